package client

import "github.com/perseus-energy/perseus/internal/api"

// The messages that operators send and get, under the name of this package too, so that a command needs to know of one
// package alone.
type (
	Job            = api.Job
	Schedules      = api.Schedules
	Straggler      = api.Straggler
	Goal           = api.Goal
	MeasureRequest = api.MeasureRequest
	Event          = api.Event
)
