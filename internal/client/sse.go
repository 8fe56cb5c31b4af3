package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// maxEvent bounds one event of a stream, and one line.
const maxEvent = 1 << 20

var errLongEvent = errors.New("an event of the stream is longer than 1 MiB")

// message is one message of a stream of server-sent events.
type message struct {
	id   string // that of the newest message which had one
	data []byte // valid until the next call
}

// stream reads server-sent events, as the HTML standard, section 9.2, has them: lines end in CR, LF or both, an empty
// line ends a message, one that begins with a colon is a comment, and a message without data is none.
type stream struct {
	r       *bufio.Reader
	begun   bool // whether the first line, which may have a byte order mark, is read
	afterCR bool
	text    []byte // of the line
	id      string
	data    []byte
	retry   time.Duration // the newest pause that the server asked for; 0: none
}

func newStream(r io.Reader) *stream { return &stream{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns the next message. A message that the end of the stream cuts off is lost, as the standard says.
func (s *stream) next() (message, error) {
	s.data = s.data[:0]
	some := false // whether the message has data, which may be empty
	for {
		line, err := s.line()
		if err != nil {
			return message{}, err
		}
		if len(line) == 0 {
			if !some {
				continue
			}
			return message{s.id, bytes.TrimSuffix(s.data, []byte("\n"))}, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			some = true
			if len(s.data)+len(value) > maxEvent {
				return message{}, errLongEvent
			}
			s.data = append(append(s.data, value...), '\n')
		case "id":
			if !bytes.ContainsRune(value, 0) {
				s.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end, valid until the next call. One that the end of the stream cuts off is
// lost: the error is io.EOF.
func (s *stream) line() ([]byte, error) {
	s.text = s.text[:0]
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return nil, err
		}
		// The LF of CR LF is skipped once it comes: to wait for it would hold back what the CR ended.
		after := s.afterCR
		s.afterCR = b == '\r'
		switch {
		case b == '\n' && after:
			continue
		case b == '\n' || b == '\r':
			if !s.begun {
				s.begun = true
				return bytes.TrimPrefix(s.text, []byte("\xef\xbb\xbf")), nil
			}
			return s.text, nil
		case len(s.text) >= maxEvent:
			return nil, errLongEvent
		}
		s.text = append(s.text, b)
	}
}
