//go:build linux && (amd64 || arm64) && !nonvml

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// driver is the open library that devices share.
type driver struct {
	lib *library

	// closing is held for reading by each call, so that the library does not go under one.
	closing sync.RWMutex
	closed  bool
}

// Open returns the GPUs that the driver shows, in the order of their indices, and what lets go of the driver again; it
// locks and changes nothing. A GPU is known by its id "nvidia:" and UUID; the index is of today and nothing is looked up
// by it later. Some 300 ms a GPU are usual where nothing else holds the driver; ctx is looked at between GPUs.
//
// It fails with ErrNoLibrary, ErrNotBuilt or an *Error. After a GPU was lost, or the driver exchanged, close and open
// again. close waits for calls under way; devices are gpu.ErrLost after it. It may be called again, and does nothing then.
func Open(ctx context.Context, c Config) (devices []gpu.Device, closeAll func() error, err error) {
	lib, err := load(c.Library)
	if err != nil {
		return nil, nil, fmt.Errorf("load NVML: %w", err)
	}
	if err := check(initialize, lib.call(initialize)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start NVML: %w", err), lib.unload())
	}
	d := &driver{lib: lib}
	devices, err = d.devices(ctx, c.Skipped)
	if err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	return devices, d.close, nil
}

// close shuts the library down and unloads it, so that the next Open loads that of an upgraded driver.
func (d *driver) close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if err := errors.Join(check(shutdown, d.lib.call(shutdown)), d.lib.unload()); err != nil {
		return fmt.Errorf("close NVML: %w", err)
	}
	return nil
}

func (d *driver) devices(ctx context.Context, skipped func(int, error)) ([]gpu.Device, error) {
	var version [80]byte
	if err := check(driverVersion, d.lib.call(driverVersion, uintptr(unsafe.Pointer(&version)), uintptr(len(version)))); err != nil {
		return nil, fmt.Errorf("driver version: %w", err)
	}
	var count uint32
	if err := check(deviceCount, d.lib.call(deviceCount, uintptr(unsafe.Pointer(&count)))); err != nil {
		return nil, fmt.Errorf("count GPUs: %w", err)
	}
	var devices []gpu.Device
	for i := range int(min(count, maxGPUs)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dev, err := d.device(i, text(version[:]))
		switch {
		case err == nil:
			devices = append(devices, dev)
		case skipped == nil:
			return nil, fmt.Errorf("open GPU %d: %w", i, err)
		default:
			skipped(i, err)
		}
	}
	return devices, nil
}

// maxGPUs bounds what is believed of a library: no node has more.
const maxGPUs = 256

// device attaches to the GPU that has the index now.
func (d *driver) device(index int, version string) (*device, error) {
	dev := &device{driver: d, info: gpu.Info{Index: index, Driver: version}}
	if err := check(handleByIndex, d.lib.call(handleByIndex, uintptr(uint32(index)), uintptr(unsafe.Pointer(&dev.handle)))); err != nil {
		return nil, err
	}
	var uuid, name [96]byte
	if err := check(getUUID, d.lib.call(getUUID, dev.handle, uintptr(unsafe.Pointer(&uuid)), uintptr(len(uuid)))); err != nil {
		return nil, err
	}
	if text(uuid[:]) == "" {
		return nil, fmt.Errorf("%w: its UUID is empty", gpu.ErrDriver)
	}
	dev.info.ID = "nvidia:" + text(uuid[:])
	// A GPU works without these two.
	if d.lib.call(getName, dev.handle, uintptr(unsafe.Pointer(&name)), uintptr(len(name))) == Success {
		dev.info.Name = text(name[:])
	}
	var pci pciInfo
	if d.lib.call(getPCI, dev.handle, uintptr(unsafe.Pointer(&pci))) == Success {
		dev.info.PCI = text(pci.address[:])
	}
	dev.scope = scopeOf(dev.info.Name)
	return dev, nil
}
