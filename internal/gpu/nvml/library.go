//go:build linux && (amd64 || arm64) && !nonvml

package nvml

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// symbol is a function of the library. A library may lack any of them: calling it is FunctionNotFound then, not the end
// of the process.
type symbol int

const (
	initialize symbol = iota
	shutdown
	driverVersion
	deviceCount
	handleByIndex
	getUUID
	getName
	getPCI
	memoryClocks
	graphicsClocks
	setLockedClocks
	resetLockedClocks
	clockInfo
	powerLimit
	defaultPowerLimit
	powerLimitConstraints
	enforcedPowerLimit
	setPowerLimit
	totalEnergy
	powerUsage
	fieldValues
	temperatureV
	temperature
	eventReasons
	throttleReasons
	migMode
	persistenceMode
	powerProfiles
	symbols // how many
)

// symbolNames has the version that the structs below fit.
var symbolNames = [symbols]string{
	initialize:            "nvmlInit_v2",
	shutdown:              "nvmlShutdown",
	driverVersion:         "nvmlSystemGetDriverVersion",
	deviceCount:           "nvmlDeviceGetCount_v2",
	handleByIndex:         "nvmlDeviceGetHandleByIndex_v2",
	getUUID:               "nvmlDeviceGetUUID",
	getName:               "nvmlDeviceGetName",
	getPCI:                "nvmlDeviceGetPciInfo_v3",
	memoryClocks:          "nvmlDeviceGetSupportedMemoryClocks",
	graphicsClocks:        "nvmlDeviceGetSupportedGraphicsClocks",
	setLockedClocks:       "nvmlDeviceSetGpuLockedClocks",
	resetLockedClocks:     "nvmlDeviceResetGpuLockedClocks",
	clockInfo:             "nvmlDeviceGetClockInfo",
	powerLimit:            "nvmlDeviceGetPowerManagementLimit",
	defaultPowerLimit:     "nvmlDeviceGetPowerManagementDefaultLimit",
	powerLimitConstraints: "nvmlDeviceGetPowerManagementLimitConstraints",
	enforcedPowerLimit:    "nvmlDeviceGetEnforcedPowerLimit",
	setPowerLimit:         "nvmlDeviceSetPowerManagementLimit",
	totalEnergy:           "nvmlDeviceGetTotalEnergyConsumption",
	powerUsage:            "nvmlDeviceGetPowerUsage",
	fieldValues:           "nvmlDeviceGetFieldValues",
	temperatureV:          "nvmlDeviceGetTemperatureV",
	temperature:           "nvmlDeviceGetTemperature", // deprecated since 13.0, but all that older drivers have
	eventReasons:          "nvmlDeviceGetCurrentClocksEventReasons",
	throttleReasons:       "nvmlDeviceGetCurrentClocksThrottleReasons", // the old name of eventReasons
	migMode:               "nvmlDeviceGetMigMode",
	persistenceMode:       "nvmlDeviceGetPersistenceMode",
	powerProfiles:         "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
}

// The structs of nvml.h, laid out as the C compilers of amd64 and arm64 do. A test compares them with C.
type (
	fieldValue struct {
		fieldID, scopeID       uint32
		timestamp, latencyUsec int64
		valueType              uint32
		code                   Code
		value                  [8]byte
	}
	temperatureInfo struct {
		version, sensor uint32
		celsius         int32
	}
	profileMasks struct {
		version                        uint32
		supported, requested, enforced [8]uint32
	}
	pciInfo struct {
		legacy                         [16]byte
		domain, bus, device, id, subID uint32
		address                        [32]byte
	}
)

// versioned returns the version field of the first version of a struct of that size.
func versioned(size uintptr) uint32 { return uint32(size) | 1<<24 }

// The fields of GetFieldValues that are read, and clock types of GetClockInfo.
const (
	fieldPowerCapped  = 74  // ns below the request because of the power limit
	fieldInstantPower = 186 // mW

	clockSM     = 1
	clockMemory = 2
)

// usualLibraries is where to look: by the loader's rules, and where driver containers and systems without a loader cache
// put the driver. All but the first are in directories that only root writes.
var usualLibraries = []string{
	"libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
}

// library is a loaded libnvidia-ml.
type library struct {
	handle uintptr
	fn     [symbols]uintptr
}

// load opens the library and looks up what it has.
func load(path string) (*library, error) {
	paths := usualLibraries
	if path != "" {
		paths = []string{path}
	}
	var errs []error
	for _, p := range paths {
		handle, err := purego.Dlopen(p, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := &library{handle: handle}
		for s, name := range symbolNames {
			l.fn[s], _ = purego.Dlsym(handle, name)
		}
		if l.fn[initialize] == 0 {
			return nil, errors.Join(fmt.Errorf("%w: %s has no %s", ErrNoLibrary, p, symbolNames[initialize]), l.unload())
		}
		return l, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrNoLibrary, errs[0])
}

func (l *library) unload() error { return purego.Dlclose(l.handle) }

// call calls a function of the library. Pointers are converted in the arguments of the call: the directive keeps what
// they point to alive and in its place until it returns. NVML binds nothing to a thread, so no thread is locked.
//
//go:uintptrescapes
func (l *library) call(s symbol, args ...uintptr) Code {
	if l.fn[s] == 0 {
		return FunctionNotFound
	}
	r, _, _ := purego.SyscallN(l.fn[s], args...)
	return Code(int32(r))
}

// check returns nil for Success.
func check(s symbol, c Code) error {
	if c == Success {
		return nil
	}
	return &Error{symbolNames[s], c}
}

// text returns what a call writes into a buffer, up to its NUL or its end.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}
