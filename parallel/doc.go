// Package parallel says which GPU of a job is where: it turns the degrees of
// tensor, context, expert, data and pipeline parallelism, and the order in which
// ranks are laid out over them, into places.
//
// # The rank order
//
// An order is the tokens tp, cp, ep, dp and pp joined by dashes, as in Megatron-LM:
// the leftmost varies fastest, so neighbouring global ranks differ in it. The
// coordinate of a token is rank mod size, and the rest goes on with rank div size.
// A token that is missing is put at the end if its size is 1, and is an error
// otherwise. The default is tp-cp-ep-dp-pp; Megatron-LM's --use-tp-pp-dp-mapping is
// tp-cp-ep-pp-dp.
//
// There are two grids over the same ranks. In the dense one ep has size 1 and
// tp·cp·dp·pp is the world size. In that of the experts tp has the size of expert
// tensor parallelism (etp, by default tp), cp has size 1, and dp is what is left,
// world / (etp·ep·pp). Both must have the same pipelines: the same distance from
// one pipeline rank to the next.
//
// # Who works together
//
// All GPUs of a pipeline rank that wait for each other within an op are one group:
// those of a tensor- and context-parallel group, and, where there are experts,
// those that share an expert-parallel group, and so on from one to the next. A
// group runs each op together: the slowest member sets the time, all members'
// energy counts. A replica is a pipeline of such groups; replicas wait for each
// other once an iteration only.
//
// The package imports nothing of this module. It comes before package
// characterize, and is not for talking to GPUs.
package parallel
