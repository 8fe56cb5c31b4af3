//go:build nonvml || !linux || !(amd64 || arm64)

package nvml

import (
	"context"
	"fmt"
	"runtime"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// Open fails with ErrNotBuilt.
func Open(context.Context, Config) ([]gpu.Device, func() error, error) {
	return nil, nil, fmt.Errorf("%w (tag nonvml, or %s/%s): use the build for linux/amd64 or linux/arm64 without that tag to reach NVIDIA GPUs",
		ErrNotBuilt, runtime.GOOS, runtime.GOARCH)
}
