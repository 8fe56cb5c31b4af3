package wire_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/wire"
)

func hello() wire.Hello {
	return wire.Hello{
		Hello: 1, Job: "llama-7b", Spec: api.JobSpec{PP: 4, WorldSize: 8, DP: 2, Microbatches: 8},
		Rank: 5, PP: 2, DP: 1, Device: "GPU-1", Instructions: []string{"forward", "backward"},
	}
}

func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []wire.Event
		var packet []byte
		sequence := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			sequence += rapid.Uint64Range(1, 1<<40).Draw(t, "gap")
			e := wire.Event{
				Kind:        wire.Kind(rapid.SampledFrom([]byte("STBEH")).Draw(t, "kind")),
				Instruction: rapid.Uint8Range(0, 1).Draw(t, "instruction"), Chunk: rapid.Uint16().Draw(t, "chunk"),
				Microbatch: rapid.Uint32().Draw(t, "microbatch"), Sequence: sequence,
				TimeNs: rapid.Uint64Max(1<<63-1).Draw(t, "time"),
			}
			if e.Kind == wire.StepBegin {
				e.Microbatch %= 2
			}
			events, packet = append(events, e), wire.AppendEvent(packet, e)
		}
		got, err := wire.AppendEvents(nil, packet, 2)
		if err != nil || !reflect.DeepEqual(got, events) {
			t.Fatalf("got %v, %v; want %v", got, err, events)
		}
	})
}

// TestLayout pins the bytes that clients in other languages write: struct.pack("<BBHIQQ", …).
func TestLayout(t *testing.T) {
	got := wire.AppendEvent(nil, wire.Event{Kind: 'B', Instruction: 1, Chunk: 0x0203, Microbatch: 0x04050607, Sequence: 8, TimeNs: 1 << 56})
	want := "B\x01\x03\x02\x07\x06\x05\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadEvents(t *testing.T) {
	good := wire.Event{Kind: 'B', Sequence: 1}
	for name, packet := range map[string][]byte{
		"empty":        {},
		"cut":          wire.AppendEvent(nil, good)[:23],
		"kind":         wire.AppendEvent(nil, wire.Event{Kind: 'X', Sequence: 1}),
		"instruction":  wire.AppendEvent(nil, wire.Event{Kind: 'E', Instruction: 2, Sequence: 1}),
		"evaluation":   wire.AppendEvent(nil, wire.Event{Kind: 'S', Microbatch: 2, Sequence: 1}),
		"sequence 0":   wire.AppendEvent(nil, wire.Event{Kind: 'H'}),
		"not rising":   wire.AppendEvent(wire.AppendEvent(nil, good), good),
		"time":         wire.AppendEvent(nil, wire.Event{Kind: 'H', Sequence: 1, TimeNs: 1 << 63}),
		"second wrong": wire.AppendEvent(wire.AppendEvent(nil, good), wire.Event{Kind: '?', Sequence: 2}),
		"too large":    make([]byte, wire.MaxPacket+8),
	} {
		before := []wire.Event{{Kind: 'T'}}
		if got, err := wire.AppendEvents(before, packet, 2); err == nil || len(got) != 1 {
			t.Errorf("%s: got %v, %v; want an error and nothing new", name, got, err)
		}
	}
}

func TestControl(t *testing.T) {
	h := hello()
	packet, err := wire.Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wire.ParseControl(packet); err != nil || !reflect.DeepEqual(got, &h) {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]any{
		`{"bye":1}`:              &wire.Bye{Bye: 1},
		`{"drain":"all"}`:        &wire.Drain{Drain: "all"},
		`{"resume":"GPU-1"}`:     &wire.Resume{Resume: "GPU-1"},
		`{"bye":1,"newer":[{}]}`: &wire.Bye{Bye: 1},
	} {
		if got, err := wire.ParseControl([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

func TestBadControl(t *testing.T) {
	with := func(change func(*wire.Hello)) string {
		h := hello()
		change(&h)
		b, _ := json.Marshal(h)
		return string(b)
	}
	for _, c := range []struct {
		text string
		code wire.Code
		part string
	}{
		{`{`, wire.Invalid, "message"},
		{`{}`, wire.Invalid, "exactly one"},
		{`{"hello":1,"bye":1}`, wire.Invalid, "exactly one"},
		{`{"bye":1} {"bye":1}`, wire.Invalid, "more follows"},
		{`{"bye":"x"}`, wire.Invalid, "bye"},
		{`{"drain":""}`, wire.Invalid, "drain"},
		{"{\"drain\":\"\xff\"}", wire.Invalid, "UTF-8"},
		{with(func(h *wire.Hello) { h.Hello = 2 }), wire.Denied, "version 1"},
		{with(func(h *wire.Hello) { h.Job = "../x" }), wire.Invalid, "job"},
		{with(func(h *wire.Hello) { h.Rank = 8 }), wire.Invalid, "rank 8: expected 0 to 7"},
		{with(func(h *wire.Hello) { h.PP = -1 }), wire.Invalid, "pp_rank"},
		{with(func(h *wire.Hello) { h.Spec.Microbatches = 0 }), wire.Invalid, "microbatches"},
		{with(func(h *wire.Hello) { h.Spec.WorldSize = 1 << 30 }), wire.Invalid, "world_size"},
		{with(func(h *wire.Hello) { h.Instructions = nil }), wire.Invalid, "instructions"},
		{with(func(h *wire.Hello) { h.Instructions = []string{"a\nb"} }), wire.Invalid, "instruction"},
		{with(func(h *wire.Hello) { h.Device = "a b" }), wire.Invalid, "device"},
		{with(func(h *wire.Hello) { h.Session = "\n" }), wire.Invalid, "session"},
		{with(func(h *wire.Hello) { h.Iteration = -1 }), wire.Invalid, "iteration"},
		{`{"drain":"` + strings.Repeat("x", wire.MaxPacket) + `"}`, wire.Invalid, "at most"},
	} {
		var refusal *wire.Refusal
		_, err := wire.ParseControl([]byte(c.text))
		if !errors.As(err, &refusal) || refusal.Code != c.code || !strings.Contains(refusal.Text, c.part) {
			t.Errorf("%.80s: got %v; want %s with %q", c.text, err, c.code, c.part)
		}
	}
}

func TestReplies(t *testing.T) {
	for _, m := range []any{&wire.Welcome{Welcome: 1, Generation: 2, HeartbeatS: 5}, &wire.Notice{Notice: "x"}, &wire.Drained{Drained: []string{}}} {
		packet, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.ParseReply(packet); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, %v; want %+v", got, err, m)
		}
	}
	var refusal *wire.Refusal
	if _, err := wire.ParseReply([]byte(`{"error":"no","code":"busy"}`)); !errors.As(err, &refusal) || refusal.Code != wire.Busy {
		t.Errorf("got %v", err)
	}
	if _, err := wire.ParseReply([]byte(`{}`)); err == nil {
		t.Error("an empty reply was taken")
	}
}

func FuzzPacket(f *testing.F) {
	h := hello()
	packet, _ := wire.Encode(h)
	f.Add(packet)
	f.Add([]byte(`{"bye":1}`))
	f.Add(wire.AppendEvent(nil, wire.Event{Kind: 'S', Sequence: 1}))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if wire.IsControl(packet) {
			m, err := wire.ParseControl(packet)
			if h, ok := m.(*wire.Hello); ok && err == nil && (h.Rank < 0 || h.Rank >= h.Spec.WorldSize) {
				t.Errorf("accepted rank %d", h.Rank)
			}
			_, _ = wire.ParseReply(packet)
			return
		}
		events, err := wire.AppendEvents(nil, packet, 3)
		if err != nil {
			return
		}
		var again []byte
		for _, e := range events {
			again = wire.AppendEvent(again, e)
		}
		if string(again) != string(packet) {
			t.Errorf("%q became %q", packet, again)
		}
	})
}
