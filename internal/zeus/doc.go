// Package zeus lets clients of Zeus's pipeline frequency optimizer (package zeus on PyPI) train under this server
// without a change: it answers the four routes of that protocol in Zeus's JSON and passes everything on to the control
// plane's own service, in the messages of package api.
//
//	POST /register_job           → a job's id, a JSON string
//	POST /register_rank/{job_id} → null
//	GET  /schedule/{job_id}?rank → {"rank":0,"frequencies":[["forward",1740],…]}: one iteration in execution order
//	POST /result/{job_id}        → null
//
// What differs from Zeus's own server is meant to: ids are unique, unknown jobs are 404, impossible degrees 422, a
// rank that registers twice is one rank, and no GET waits for another rank's GET or report.
//
// It comes after package api and beside the server, keeps nothing that a restart would miss but the clocks last handed
// to each rank, and neither checks tokens (SplitToken only finds them) nor plans.
package zeus
