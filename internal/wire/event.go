// Package wire holds the packets between a training process and the node agent: reading and writing them, and nothing
// else. A packet is one message of a SOCK_SEQPACKET socket. It comes after internal/api and before the agent, package
// training and the demo; clients/python writes the same packets.
//
// Control messages are JSON objects, see [ParseControl]. Events are 24 bytes each, little-endian, any number of them in
// a packet:
//
//	offset  size  field
//	0       1     kind: 'S' step begins, 'T' step ends, 'B' op begins, 'E' op ends, 'H' heartbeat
//	1       1     instruction: index into the hello's instructions
//	2       2     chunk
//	4       4     microbatch, 0xFFFFFFFF unknown; of 'S': 1 for an evaluation, which is not counted, else 0
//	8       8     sequence: 1 for the first event, one more for each, those included that were never sent
//	16      8     time in ns of CLOCK_MONOTONIC
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxPacket is the size of the largest packet in bytes.
const MaxPacket = 65536

// EventSize is the size of an event in bytes.
const EventSize = 24

// UnknownMicrobatch stands for a microbatch that the client does not know.
const UnknownMicrobatch = 0xFFFFFFFF

// Kind is what happened.
type Kind byte

// The kinds.
const (
	StepBegin Kind = 'S'
	StepEnd   Kind = 'T'
	OpBegin   Kind = 'B'
	OpEnd     Kind = 'E'
	Heartbeat Kind = 'H'
)

// Event is one thing that happened in a training process.
type Event struct {
	Kind        Kind
	Instruction uint8
	Chunk       uint16
	Microbatch  uint32
	Sequence    uint64
	// TimeNs is on the clock that client and agent share.
	TimeNs uint64
}

// Evaluation tells whether a step that begins does not train.
func (e Event) Evaluation() bool { return e.Kind == StepBegin && e.Microbatch == 1 }

// AppendEvent returns b with e at its end.
func AppendEvent(b []byte, e Event) []byte {
	b = append(b, byte(e.Kind), e.Instruction)
	b = binary.LittleEndian.AppendUint16(b, e.Chunk)
	b = binary.LittleEndian.AppendUint32(b, e.Microbatch)
	b = binary.LittleEndian.AppendUint64(b, e.Sequence)
	return binary.LittleEndian.AppendUint64(b, e.TimeNs)
}

// AppendEvents returns events with those of a packet at its end, in their order. It fails, and returns events as it was,
// on a packet that is not whole events, on an unknown kind, an instruction of instructions or above, a step begin that
// is neither training nor evaluation, and on sequence numbers that do not rise from 1.
func AppendEvents(events []Event, packet []byte, instructions int) ([]Event, error) {
	if len(packet) == 0 || len(packet) > MaxPacket || len(packet)%EventSize != 0 {
		return events, fmt.Errorf("packet of %d bytes: expected a multiple of %d, up to %d", len(packet), EventSize, MaxPacket)
	}
	before, last := len(events), uint64(0)
	for ; len(packet) > 0; packet = packet[EventSize:] {
		e := Event{
			Kind: Kind(packet[0]), Instruction: packet[1],
			Chunk:      binary.LittleEndian.Uint16(packet[2:]),
			Microbatch: binary.LittleEndian.Uint32(packet[4:]),
			Sequence:   binary.LittleEndian.Uint64(packet[8:]),
			TimeNs:     binary.LittleEndian.Uint64(packet[16:]),
		}
		if err := e.check(instructions, last); err != nil {
			return events[:before], err
		}
		events, last = append(events, e), e.Sequence
	}
	return events, nil
}

func (e Event) check(instructions int, last uint64) error {
	switch e.Kind {
	case StepBegin:
		if e.Microbatch > 1 {
			return fmt.Errorf("step begin with microbatch %d: expected 0, or 1 for an evaluation", e.Microbatch)
		}
	case OpBegin, OpEnd:
		if int(e.Instruction) >= instructions {
			return fmt.Errorf("instruction %d: the hello named %d", e.Instruction, instructions)
		}
	case StepEnd, Heartbeat:
	default:
		return fmt.Errorf("event of kind %q: expected S, T, B, E or H", byte(e.Kind))
	}
	if e.Sequence <= last {
		return fmt.Errorf("sequence %d after %d: expected a larger one", e.Sequence, last)
	}
	if e.TimeNs > 1<<63-1 {
		return errors.New("time: beyond 2^63 ns")
	}
	return nil
}
