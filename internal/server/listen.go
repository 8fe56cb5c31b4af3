package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ShutdownTime is how long open requests may take to end when the server stops; long-polls end at once.
const ShutdownTime = 3 * time.Second

// MemoryLimit is the soft limit of memory for a process that serves and does nothing else: ranks that wait make garbage
// slowly, and it is better collected than kept.
const MemoryLimit = 200 << 20

// Serve answers requests at a listener, which it closes, and does the background work, until ctx ends or one of them
// fails.
func (s *Server) Serve(ctx context.Context, l net.Listener, t *tls.Config) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hs := &http.Server{
		Handler: h, TLSConfig: t, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		if t != nil {
			served <- hs.ServeTLS(l, "", "")
		} else {
			served <- hs.Serve(l)
		}
	}()
	worked := make(chan error, 1)
	go func() { worked <- s.Run(ctx) }()
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-served:
		served <- nil
	case failure = <-worked:
		worked <- nil
	}
	s.stop()
	cancel()
	// Background work and the end of requests overlap: both are bounded.
	end, endCancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTime)
	defer endCancel()
	if err := hs.Shutdown(end); err != nil {
		_ = hs.Close()
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		failure = errors.Join(failure, err)
	}
	return errors.Join(failure, <-worked)
}
