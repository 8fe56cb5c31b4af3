package main

import "log/slog"

// logFlags say what is logged, and how.
type logFlags struct {
	LogFormat string `group:"What it tells:" enum:"text,json" default:"text" help:"Lines of the log: text or json (${default})."`
	LogLevel  string `group:"What it tells:" enum:"debug,info,warn,error" default:"info" help:"Least level that is logged: debug, info, warn, error (${default})."`
}

// logger returns a logger to standard error.
func (f *logFlags) logger(w *world) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // an enum
	opt := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w.stderr, opt))
	}
	return slog.New(slog.NewTextHandler(w.stderr, opt))
}
