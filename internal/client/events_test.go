package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/internal/api"
)

// TestStream reads streams as the HTML standard, section 9.2, says.
func TestStream(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // id=data of each message
	}{
		{"plain", "id: 1\ndata: a\n\nid: 2\ndata: b\n\n", "1=a 2=b"},
		{"without blanks", "id:1\ndata:a\n\n", "1=a"},
		{"one blank only", "data:  a\n\n", "= a"},
		{"CR", "data: a\r\rdata: b\r\r", "=a =b"},
		{"CR LF", "data: a\r\n\r\ndata: b\r\n\r\n", "=a =b"},
		{"CR LF in a message", "data: a\r\ndata: b\r\n\r\n", "=a\nb"},
		{"CR, then LF", "data: a\r\n\n", "=a"},
		{"several lines", "data: a\ndata: b\ndata\n\n", "=a\nb\n"},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", "=a"},
		{"a later mark", "data: a\n\n\xef\xbb\xbfdata: b\n\n", "=a"},
		{"comments", ": hello\n\n:\n\ndata: a\n:x\n\n", "=a"},
		{"cut off", "data: a\n\ndata: b\n", "=a"},
		{"cut off in a line", "data: a\n\ndata: b", "=a"},
		{"the id stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "7=a 7=b =c"},
		{"an id with a zero", "id: 1\x002\ndata: a\n\n", "=a"},
		{"empty data", "data\n\n", "="},
		{"other fields", "event: state\nretry: 250\nnonsense\ndata: a\n\n", "=a"},
		{"no message without data", "id: 3\n\nevent: x\n\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := messages(t, strings.NewReader(test.text)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	s := newStream(strings.NewReader("retry: 250\nretry: -1\nretry: soon\n\n"))
	if _, err := s.next(); err != io.EOF || s.retry != 250*time.Millisecond {
		t.Errorf("%v, %v", s.retry, err)
	}
	for _, long := range []string{
		"data: " + strings.Repeat("x", maxEvent+1) + "\n\n",
		strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", maxEvent/1000+2) + "\n",
	} {
		if _, err := newStream(strings.NewReader(long)).next(); err != errLongEvent {
			t.Errorf("a long event: %v", err)
		}
	}
}

func messages(t interface{ Errorf(string, ...any) }, r io.Reader) string {
	var all []string
	for s := newStream(r); ; {
		m, err := s.next()
		if err != nil {
			if err != io.EOF {
				t.Errorf("%v", err)
			}
			return strings.Join(all, " ")
		}
		all = append(all, m.id+"="+string(m.data))
	}
}

// TestStreamInPieces has it make no difference how the network cuts a stream, and no message wait for what comes
// after it.
func TestStreamInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"data: a", "data:", "id: 1", "id", ": c", "\n", "\r", "\r\n", "\n\n", "\r\r", "\xef\xbb\xbf", "x",
		})).Draw(t, "text"), "")
		whole := messages(t, strings.NewReader(text))
		if pieces := messages(t, iotest.OneByteReader(strings.NewReader(text))); pieces != whole {
			t.Errorf("%q: %q in pieces, %q as a whole", text, pieces, whole)
		}
	})
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "data: a"+end+end) }()
		if m, err := newStream(iotest.OneByteReader(r)).next(); err != nil || string(m.data) != "a" {
			t.Errorf("%q: %q, %v", end, m.data, err)
		}
		_ = r.Close()
	}
}

// FuzzStream reads any bytes: it ends, and no message holds more than there was.
func FuzzStream(f *testing.F) {
	f.Add([]byte("id: 1\r\ndata: {}\r\rretry: 3\n: c\n\n"))
	f.Add([]byte("\xef\xbb\xbfdata\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newStream(strings.NewReader(string(text)))
		for total := 0; ; {
			m, err := s.next()
			if err != nil {
				break
			}
			if total += len(m.data) + 1; total > len(text) {
				t.Fatalf("%d bytes of data in %d", total, len(text))
			}
		}
	})
}

// eventLines returns a stream of events with ids.
func eventLines(ids ...int) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "id: %d\nevent: state\ndata: {\"id\":%d,\"kind\":\"state\",\"text\":\"e%d\"}\n\n", id, id, id)
	}
	return b.String()
}

func streamOf(text string) (*http.Response, error) {
	return reply(200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, text)
}

// open is a stream that says something and then stays open until the client leaves.
func open(r *http.Request, text string) (*http.Response, error) {
	resp, err := streamOf("")
	body, w := io.Pipe()
	resp.Body = body
	go func() {
		_, _ = io.WriteString(w, text)
		<-r.Context().Done()
		w.CloseWithError(r.Context().Err())
	}()
	return resp, err
}

// follow returns the ids of the events up to the last one wanted, and the error where one came before.
func follow(ctx context.Context, c *Client, after, last int64) (ids []int64, err error) {
	for e, err := range c.Events(ctx, "a", after) {
		if err != nil {
			return ids, err
		}
		if ids = append(ids, e.ID); e.ID == last {
			break
		}
	}
	return ids, nil
}

// TestEvents follows a job through all that can happen to the connection.
func TestEvents(t *testing.T) {
	var afters []string
	inFakeTime(t, Config{Patience: 10 * time.Second}, func(n int, r *http.Request) (*http.Response, error) {
		afters = append(afters, r.URL.Query().Get("after"))
		switch n {
		case 0:
			return nil, errRefused
		case 1:
			return streamOf(": hello\n\n" + eventLines(4, 5)) // and the server stops
		case 2:
			return reply(503, nil, "")
		case 3:
			return streamOf(eventLines(4, 5, 6) + "id: 7\ndata: {\"id\":7") // sends some again; cut off
		case 4:
			return open(r, eventLines(7)) // dies without a word
		case 5:
			return streamOf("data:\n\ndata: {\"kind\":\"x\"}\nid: 8\n\n") // the id only in the stream
		default:
			return streamOf(eventLines(9, 10))
		}
	}, func(t *testing.T, c *Client, p *played) {
		ids, err := follow(t.Context(), c, 3, 9)
		if fmt.Sprint(ids) != "[4 5 6 7 8 9]" || err != nil || p.n != 7 || strings.Join(afters, " ") != "3 3 5 5 6 7 8" {
			t.Errorf("%v, %v, %d connections after %v", ids, err, p.n, afters)
		}
	})
}

// TestEventsEnd has a job no longer followed where that makes no sense.
func TestEventsEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer script
		want   string
	}{
		{"gone", func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return streamOf(eventLines(1))
			}
			return reply(404, nil, `{"detail":"no such job"}`)
		}, "follow job a: no such job (404 Not Found)"},
		{"down for too long", func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return streamOf(eventLines(1))
			}
			return nil, errRefused
		}, "follow job a: http://perseus.example: connection refused"},
		{"no stream", func(int, *http.Request) (*http.Response, error) { return reply(200, nil, "{}") }, "not a stream of events"},
		{"no event", func(int, *http.Request) (*http.Response, error) { return streamOf("data: x\n\n") }, "an event is not what this version expects"},
		{"too long an event", func(int, *http.Request) (*http.Response, error) {
			return streamOf("data: " + strings.Repeat("x", maxEvent+1))
		}, "longer than 1 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inFakeTime(t, Config{Patience: time.Minute}, test.answer, func(t *testing.T, c *Client, _ *played) {
				if _, err := follow(t.Context(), c, 0, -1); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %s", err, test.want)
				}
			})
		})
	}
	inFakeTime(t, Config{}, func(_ int, r *http.Request) (*http.Response, error) {
		return open(r, eventLines(1))
	}, func(t *testing.T, c *Client, _ *played) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var errs []error
		for e, err := range c.Events(ctx, "a", 0) {
			if cancel(); err != nil {
				errs = append(errs, err)
			} else if e.ID != 1 {
				t.Errorf("%+v", e)
			}
		}
		if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("%v", errs)
		}
	})
}

// TestEventsPause has a server that closes each stream at once not asked all the time, and its wish for a pause kept.
func TestEventsPause(t *testing.T) {
	for retry, least := range map[string]time.Duration{"": 2 * time.Second, "retry: 30000\n\n": 300 * time.Second} {
		inFakeTime(t, Config{}, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 10 {
				return streamOf(eventLines(1))
			}
			return streamOf(retry)
		}, func(t *testing.T, c *Client, _ *played) {
			began := time.Now()
			if _, err := follow(t.Context(), c, 0, 1); err != nil || time.Since(began) < least {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	}
}

// TestEventsQuiet has a job in which nothing happens for a while followed on one connection.
func TestEventsQuiet(t *testing.T) {
	inFakeTime(t, Config{}, func(_ int, r *http.Request) (*http.Response, error) {
		resp, err := streamOf("")
		body, w := io.Pipe()
		resp.Body = body
		context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
		go func() {
			for _, text := range []string{": hello\n\n", eventLines(1), ": still here\n\n", eventLines(2)} {
				time.Sleep(55 * time.Second)
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		}()
		return resp, err
	}, func(t *testing.T, c *Client, p *played) {
		if ids, err := follow(t.Context(), c, 0, 2); fmt.Sprint(ids) != "[1 2]" || err != nil || p.n != 1 {
			t.Errorf("%v, %v, %d connections", ids, err, p.n)
		}
	})
}

// TestEventsLive follows a job over a real connection, and hangs up.
func TestEventsLive(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream, application/problem+json" {
			t.Errorf("accepts %q", r.Header.Get("Accept"))
		}
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Error("events may be compressed on the way, and held back for it")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, eventLines(1))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	for e, err := range c.Events(t.Context(), "a", 0) {
		if err != nil || e != (api.Event{ID: 1, Kind: "state", Text: "e1"}) {
			t.Errorf("%+v, %v", e, err)
		}
		break
	}
	<-gone
}
