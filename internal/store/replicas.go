package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

const (
	channel = "perseus_news"
	// lookAgain is how often subscribers are told to look at everything: a replica that dies between a commit and its notification has
	// told nobody. (A notification within the transaction would be sure, but PostgreSQL commits those one after the other.)
	lookAgain = 30 * time.Second
	// rescueEvery is how often a replica looks for work of replicas that are gone.
	rescueEvery = 5 * time.Second
	reconnect   = time.Second
	lastWords   = 2 * time.Second
)

// announce has the other replicas told, soon.
func (e *postgresEngine) announce(ids ...string) {
	if len(ids) == 0 {
		return
	}
	e.mu.Lock()
	for _, id := range ids {
		e.told[id] = struct{}{}
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// tell notifies the other replicas of what was published, together what came since the last time.
func (e *postgresEngine) tell(ctx context.Context) {
	for {
		select {
		case <-e.wake:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
			if err := e.tellOnce(last); err != nil {
				e.s.log.Warn("other replicas were not told of the last changes; they will look by themselves", "error", err)
			}
			return
		}
		if err := e.tellOnce(ctx); err != nil && ctx.Err() == nil {
			e.s.log.Warn("could not tell other replicas of changes; trying again", "error", err)
			pause(ctx, reconnect)
			e.announce("") // and wake
		}
	}
}

func (e *postgresEngine) tellOnce(ctx context.Context) error {
	e.mu.Lock()
	told := e.told
	e.told = map[string]struct{}{}
	e.mu.Unlock()
	if len(told) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(told))
	_, err := e.pool.Exec(ctx, `SELECT pg_notify($1, $2 || ' ' || id) FROM unnest($3::text[]) AS id`, channel, e.instance, ids)
	if err != nil {
		e.mu.Lock()
		maps.Copy(e.told, told)
		e.mu.Unlock()
	}
	return err
}

// listen makes the connection that hears of other replicas and holds this one's lock.
func (e *postgresEngine) listen(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, e.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to hear of other replicas: %w", e.explain(err))
	}
	for _, q := range []string{`LISTEN ` + channel, `SELECT pg_advisory_lock(hashtextextended('` + e.instance + `', 0))`} {
		if _, err := conn.Exec(ctx, q); err != nil {
			conn.Close(context.WithoutCancel(ctx))
			return nil, fmt.Errorf("beginning to hear of other replicas: %w", e.explain(err))
		}
	}
	return conn, nil
}

// hear passes on what other replicas tell, and connects again when the connection is lost.
func (e *postgresEngine) hear(ctx context.Context, conn *pgx.Conn) {
	for ctx.Err() == nil {
		if conn == nil {
			var err error
			if conn, err = e.listen(ctx); err != nil {
				e.s.log.Warn("cannot hear of other replicas; trying again", "error", err)
				pause(ctx, reconnect)
				continue
			}
			e.s.hub.publish("") // some may have been missed
		}
		err := e.hearOn(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		conn.Close(closing)
		cancel()
		conn = nil
		if ctx.Err() == nil {
			e.s.log.Warn("lost the connection that hears of other replicas; connecting again", "error", err)
		}
	}
}

func (e *postgresEngine) hearOn(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, lookAgain)
		n, err := conn.WaitForNotification(wait)
		timeout := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case timeout:
			e.s.hub.publish("")
			if err := conn.Ping(ctx); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if from, id, ok := strings.Cut(n.Payload, " "); ok && from != e.instance {
				e.s.hub.publish(id)
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (e *postgresEngine) work(ctx context.Context, cfg *river.Config) error {
	cfg.ID = e.instance
	ctx, cancel := context.WithCancel(ctx)
	rescued := make(chan struct{})
	go func() {
		defer close(rescued)
		for ctx.Err() == nil {
			if err := e.rescue(ctx); err != nil && ctx.Err() == nil {
				e.s.log.Warn("could not look for the work of replicas that are gone; trying again", "error", err)
			}
			pause(ctx, rescueEvery)
		}
	}()
	defer func() {
		cancel()
		<-rescued
	}()
	return e.s.runRiver(ctx, e.driver, cfg)
}

// rescue puts back into the queue what replicas were doing that no longer hold their lock. One that only lost its connection may still
// be doing it: it is done twice then.
func (e *postgresEngine) rescue(ctx context.Context) error {
	rows, err := e.pool.Query(ctx, `SELECT DISTINCT attempted_by[array_upper(attempted_by, 1)] FROM river_job WHERE state = 'running' AND kind = $1`, workArgs{}.Kind())
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == e.instance {
			continue
		}
		if err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
			var gone bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, name).Scan(&gone); err != nil || !gone {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE river_job SET
				state = CASE WHEN attempt < max_attempts THEN 'available' ELSE 'discarded' END::river_job_state,
				finalized_at = CASE WHEN attempt < max_attempts THEN NULL ELSE now() END, scheduled_at = now()
				WHERE state = 'running' AND kind = $2 AND attempted_by[array_upper(attempted_by, 1)] = $1`, name, workArgs{}.Kind())
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
