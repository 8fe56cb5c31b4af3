package nvml_test

import (
	"errors"
	"testing"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
)

func TestErrorKinds(t *testing.T) {
	for code, want := range map[nvml.Code]error{
		nvml.NotSupported: gpu.ErrNotSupported, nvml.FunctionNotFound: gpu.ErrNotSupported, nvml.ArgumentVersion: gpu.ErrNotSupported,
		nvml.NoPermission: gpu.ErrNoPermission, nvml.OperatingSystem: gpu.ErrNoPermission,
		nvml.GPUIsLost: gpu.ErrLost, nvml.ResetRequired: gpu.ErrLost, nvml.VersionMismatch: gpu.ErrLost, nvml.Uninitialized: gpu.ErrLost,
		nvml.InvalidArgument: gpu.ErrInvalid,
		nvml.InUse:           gpu.ErrDriver, nvml.NotReady: gpu.ErrDriver, nvml.Unknown: gpu.ErrDriver, 12345: gpu.ErrDriver, -1: gpu.ErrDriver,
	} {
		err := &nvml.Error{Call: "nvmlCall", Code: code}
		for _, kind := range []error{gpu.ErrNotSupported, gpu.ErrNoPermission, gpu.ErrLost, gpu.ErrInvalid, gpu.ErrDriver} {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%v: %v is %v", code, err, kind)
			}
		}
	}
	if got := (&nvml.Error{Call: "nvmlCall", Code: 15}).Error(); got != "nvmlCall returned GPU_IS_LOST (15): the GPU is lost" {
		t.Error(got)
	}
}
