package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/perseus-energy/perseus/internal/api"
)

// Version is the one that hello and welcome carry.
const Version = 1

// Hello is the first packet of a training process: who it is and which GPU it runs on.
type Hello struct {
	Hello int         `json:"hello"`
	Job   string      `json:"job"`
	Spec  api.JobSpec `json:"spec"`
	// Generation that the process believes to be in; 0: the newest.
	Generation int `json:"generation"`
	Rank       int `json:"rank"`
	PP         int `json:"pp_rank"`
	DP         int `json:"dp_rank"`
	TP         int `json:"tp_rank"`
	CP         int `json:"cp_rank"`
	EP         int `json:"ep_rank"`
	// Device is the id of the GPU, with or without the vendor's prefix, or its index.
	Device string `json:"device"`
	// Instructions are what events point to.
	Instructions []string `json:"instructions"`
	Client       string   `json:"client,omitempty"`
	// Iteration is how many steps the process has begun so far, evaluations left out: more than 0 where it connects
	// again. Session names the process, the same at each of its hellos; empty: the agent finds a name.
	Iteration int64  `json:"iteration,omitempty"`
	Session   string `json:"session,omitempty"`
}

// Welcome answers a Hello that was accepted.
type Welcome struct {
	Welcome int `json:"welcome"`
	// Generation is 0 as long as the server has not answered.
	Generation int `json:"generation"`
	// HeartbeatS is after how many seconds without an event the client sends a heartbeat.
	HeartbeatS int `json:"heartbeat_s"`
	// Steering tells whether clocks will be changed; Note says why not.
	Steering bool   `json:"steering"`
	Note     string `json:"note"`
}

// Code is the kind of a refusal.
type Code string

// The codes.
const (
	Denied      Code = "denied"      // not allowed; trying again is of no use
	Busy        Code = "busy"        // the GPU is leased to another rank
	Invalid     Code = "invalid"     // the message is wrong
	Unavailable Code = "unavailable" // not now
)

// Refusal answers what was not accepted; the agent closes after it. It is an error.
type Refusal struct {
	Text string `json:"error"`
	Code Code   `json:"code"`
}

func (r *Refusal) Error() string { return r.Text }

// Notice is something that the client should log.
type Notice struct {
	Notice string `json:"notice"`
}

// Bye ends a connection on purpose.
type Bye struct {
	Bye int `json:"bye"`
}

// Drain makes the agent let go of a GPU, by id, or "all", until a Resume of the same.
type Drain struct {
	Drain string `json:"drain"`
}

// Resume takes a Drain back.
type Resume struct {
	Resume string `json:"resume"`
}

// Drained answers a Drain or Resume with the ids of the GPUs that are drained now.
type Drained struct {
	Drained []string `json:"drained"`
}

var (
	jobPattern         = regexp.MustCompile(api.JobIDPattern)
	instructionPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
)

// Encode returns a control message as a packet. It fails on one that is too large.
func Encode(message any) ([]byte, error) {
	b, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", message, err)
	}
	if len(b) > MaxPacket {
		return nil, fmt.Errorf("encode %T: %d bytes, more than the %d of a packet", message, len(b), MaxPacket)
	}
	return b, nil
}

// IsControl tells whether a packet is a control message and not events.
func IsControl(packet []byte) bool { return len(packet) > 0 && packet[0] == '{' }

// ParseControl returns the Hello, Bye, Drain or Resume that a packet to the agent holds, as a pointer. Unknown fields
// are left out, so that newer clients can be understood; anything else that is wrong is a *Refusal with code invalid,
// or denied for another version.
func ParseControl(packet []byte) (any, error) {
	if len(packet) > MaxPacket {
		return nil, invalid("message of %d bytes: at most %d", len(packet), MaxPacket)
	}
	if !utf8.Valid(packet) {
		return nil, invalid("message is not UTF-8")
	}
	var which struct {
		Hello, Bye    *json.RawMessage
		Drain, Resume *json.RawMessage
	}
	if err := unmarshal(packet, &which); err != nil {
		return nil, err
	}
	var found []any
	if which.Hello != nil {
		found = append(found, &Hello{})
	}
	if which.Bye != nil {
		found = append(found, &Bye{})
	}
	if which.Drain != nil {
		found = append(found, &Drain{})
	}
	if which.Resume != nil {
		found = append(found, &Resume{})
	}
	if len(found) != 1 {
		return nil, invalid("message: expected exactly one of the fields hello, bye, drain and resume")
	}
	if err := unmarshal(packet, found[0]); err != nil {
		return nil, err
	}
	switch m := found[0].(type) {
	case *Hello:
		return m, m.Check()
	case *Drain:
		return m, checkID("drain", m.Drain)
	case *Resume:
		return m, checkID("resume", m.Resume)
	}
	return found[0], nil
}

// ParseReply returns the Welcome, Notice or Drained that a packet from the agent holds, as a pointer, and a Refusal as
// the error.
func ParseReply(packet []byte) (any, error) {
	var all struct {
		Welcome *int     `json:"welcome"`
		Error   *string  `json:"error"`
		Notice  *string  `json:"notice"`
		Drained []string `json:"drained"`
	}
	if err := unmarshal(packet, &all); err != nil {
		return nil, err
	}
	var m any
	switch {
	case all.Error != nil:
		r := &Refusal{}
		if err := unmarshal(packet, r); err != nil {
			return nil, err
		}
		return nil, r
	case all.Welcome != nil:
		m = &Welcome{}
	case all.Notice != nil:
		m = &Notice{}
	case all.Drained != nil:
		m = &Drained{}
	default:
		return nil, invalid("message: none of the fields welcome, error, notice and drained")
	}
	return m, unmarshal(packet, m)
}

// Check returns a *Refusal that names the field that is wrong, or nil.
func (h *Hello) Check() error {
	if h.Hello != Version {
		return &Refusal{fmt.Sprintf("hello %d: this agent speaks version %d; install the client that belongs to it", h.Hello, Version), Denied}
	}
	if !jobPattern.MatchString(h.Job) {
		return invalid("job %.40q: expected letters, digits, '.', '_' and '-', up to 128, the first a letter or digit", h.Job)
	}
	if s := h.Spec; s.PP < 1 || s.WorldSize < 1 || s.Microbatches < 1 || s.PP > 4096 || s.WorldSize > 65536 ||
		s.Microbatches > 65536 || s.Chunks < 0 || s.Chunks > 64 {
		return invalid("spec: pp %d (1 to 4096), world_size %d (1 to 65536), microbatches %d (1 to 65536), chunks %d (up to 64)",
			s.PP, s.WorldSize, s.Microbatches, s.Chunks)
	}
	for _, f := range []struct {
		name     string
		v, limit int
	}{
		{"rank", h.Rank, h.Spec.WorldSize},
		{"pp_rank", h.PP, h.Spec.PP},
		{"dp_rank", h.DP, max(h.Spec.DP, 1)},
		{"tp_rank", h.TP, max(h.Spec.TP, 1)},
		{"cp_rank", h.CP, max(h.Spec.CP, 1)},
		{"ep_rank", h.EP, max(h.Spec.EP, 1)},
		{"generation", h.Generation, 1 << 31},
	} {
		if f.v < 0 || f.v >= f.limit {
			return invalid("%s %d: expected 0 to %d", f.name, f.v, f.limit-1)
		}
	}
	if h.Iteration < 0 || h.Iteration > 1e12 {
		return invalid("iteration %d: expected 0 to 10^12", h.Iteration)
	}
	if len(h.Session) > 64 || len(h.Client) > 64 || strings.ContainsFunc(h.Session+h.Client, func(r rune) bool { return r < ' ' || r > '~' }) {
		return invalid("client and session: expected up to 64 printable ASCII characters")
	}
	if len(h.Instructions) < 1 || len(h.Instructions) > 256 {
		return invalid("%d instructions: expected 1 to 256", len(h.Instructions))
	}
	for _, name := range h.Instructions {
		if !instructionPattern.MatchString(name) {
			return invalid("instruction %.40q: expected small letters, digits, '_' and '-', up to 64, the first a letter", name)
		}
	}
	return checkID("device", h.Device)
}

func checkID(field, id string) error {
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid("%s %.40q: expected a GPU's id or index, up to 128 characters", field, id)
	}
	return nil
}

func unmarshal(packet []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(packet))
	if err := d.Decode(v); err != nil {
		return invalid("message: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("message: more follows the JSON object")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &Refusal{fmt.Sprintf(format, args...), Invalid}
}
