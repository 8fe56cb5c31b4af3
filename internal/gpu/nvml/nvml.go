// Package nvml drives NVIDIA GPUs through their management library, libnvidia-ml.so.1, which is loaded at run time
// without cgo. It implements gpu.Device and passes its contract, on GPUs and on the stand-in library of package
// nvmltest.
//
// A build with the tag nonvml, or for another system than Linux on amd64 and arm64, has only an Open that says so: it is
// static, which the other is not (docs/adr/007-nvml-without-cgo.md).
//
// While devices are open this process is a client of the driver: it keeps locks alive on a node without persistence
// mode, and it stands in the way of resets, MIG switches and driver upgrades. Close what Open returned to let go.
package nvml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// Errors of Open that need a person.
var (
	// ErrNoLibrary: there is no NVIDIA management library here.
	ErrNoLibrary = errors.New("no NVIDIA management library")
	// ErrNotBuilt: this program was built without NVML.
	ErrNotBuilt = errors.New("built without NVML")
)

// Config says what to open. The zero value opens every GPU of the installed driver.
type Config struct {
	// Library is the path or name of the library; empty for libnvidia-ml.so.1 where the loader or the usual driver
	// containers have it.
	Library string
	// Skipped is told of each GPU that cannot be opened, by its index of today. Without it one such GPU fails Open.
	Skipped func(index int, err error)
}

// Code is what a call of the library returned.
type Code int32

// The codes that somebody acts on.
const (
	Success              Code = 0
	Uninitialized        Code = 1
	InvalidArgument      Code = 2
	NotSupported         Code = 3
	NoPermission         Code = 4
	NotFound             Code = 6
	InsufficientSize     Code = 7
	DriverNotLoaded      Code = 9
	FunctionNotFound     Code = 13
	GPUIsLost            Code = 15
	ResetRequired        Code = 16
	OperatingSystem      Code = 17
	VersionMismatch      Code = 18
	InUse                Code = 19
	FrequencyUnsupported Code = 24
	ArgumentVersion      Code = 25
	Deprecated           Code = 26
	NotReady             Code = 27
	GPUNotFound          Code = 28
	Unknown              Code = 999
)

// kinds says which of gpu's errors a code is; all others are gpu.ErrDriver.
var kinds = map[Code]error{
	Uninitialized:        gpu.ErrLost,
	InvalidArgument:      gpu.ErrInvalid,
	NotSupported:         gpu.ErrNotSupported,
	NoPermission:         gpu.ErrNoPermission,
	DriverNotLoaded:      gpu.ErrLost,
	FunctionNotFound:     gpu.ErrNotSupported,
	GPUIsLost:            gpu.ErrLost,
	ResetRequired:        gpu.ErrLost,
	OperatingSystem:      gpu.ErrNoPermission, // the device is kept from this control group
	VersionMismatch:      gpu.ErrLost,         // the driver was exchanged under us
	FrequencyUnsupported: gpu.ErrInvalid,
	ArgumentVersion:      gpu.ErrNotSupported,
	Deprecated:           gpu.ErrNotSupported,
	GPUNotFound:          gpu.ErrLost,
}

// names are the library's own, for messages.
var names = map[Code]string{
	Uninitialized: "UNINITIALIZED", InvalidArgument: "INVALID_ARGUMENT", NotSupported: "NOT_SUPPORTED",
	NoPermission: "NO_PERMISSION", NotFound: "NOT_FOUND", InsufficientSize: "INSUFFICIENT_SIZE",
	DriverNotLoaded: "DRIVER_NOT_LOADED", FunctionNotFound: "FUNCTION_NOT_FOUND", GPUIsLost: "GPU_IS_LOST",
	ResetRequired: "RESET_REQUIRED", OperatingSystem: "OPERATING_SYSTEM", VersionMismatch: "LIB_RM_VERSION_MISMATCH",
	InUse: "IN_USE", FrequencyUnsupported: "FREQ_NOT_SUPPORTED", ArgumentVersion: "ARGUMENT_VERSION_MISMATCH",
	Deprecated: "DEPRECATED", NotReady: "NOT_READY", GPUNotFound: "GPU_NOT_FOUND", Unknown: "UNKNOWN",
}

// String returns the library's name of c with its number, as in "GPU_IS_LOST (15)".
func (c Code) String() string {
	if name, ok := names[c]; ok {
		return fmt.Sprintf("%s (%d)", name, int32(c))
	}
	return fmt.Sprintf("error %d", int32(c))
}

// Error is a call that the library refused. It is one of package gpu's errors too: errors.Is tells which.
type Error struct {
	// Call is the function of the library, as in nvmlDeviceGetClockInfo.
	Call string
	Code Code
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s returned %v: %v", e.Call, e.Code, e.Unwrap())
}

// Unwrap returns the kind of the error.
func (e *Error) Unwrap() error {
	if kind, ok := kinds[e.Code]; ok {
		return kind
	}
	return gpu.ErrDriver
}

// scopeOf returns what the energy counter of a GPU of that name covers. On Grace superchips it is the module, with the
// processor and its memory; where that is not known for sure, as on GB200, the same is assumed.
func scopeOf(name string) gpu.Scope {
	for word := range strings.FieldsSeq(name) {
		for _, grace := range []string{"GH", "GB"} {
			if rest, ok := strings.CutPrefix(word, grace); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				return gpu.ScopeModule
			}
		}
	}
	return gpu.ScopeGPU
}
