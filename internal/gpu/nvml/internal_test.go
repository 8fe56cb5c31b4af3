package nvml

import (
	"testing"

	"github.com/perseus-energy/perseus/internal/gpu"
)

func TestScope(t *testing.T) {
	for name, want := range map[string]gpu.Scope{
		"NVIDIA GH200 480GB": gpu.ScopeModule, "NVIDIA GB200": gpu.ScopeModule, "NVIDIA GB300": gpu.ScopeModule,
		"NVIDIA A100-SXM4-80GB": gpu.ScopeGPU, "NVIDIA H200": gpu.ScopeGPU, "": gpu.ScopeGPU, "80 GB": gpu.ScopeGPU,
	} {
		if got := scopeOf(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
