package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/relay"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// SetFault brings a fault of a member about or takes it away, and returns when
// that has happened. Saying it twice changes nothing.
func (f *Fleet) SetFault(ctx context.Context, member string, wanted fault.Fault, on bool) error {
	return f.change(ctx, func(st *state.Fleet) error {
		if members := plan.Members(st.Members); !slices.Contains(members, member) {
			return fmt.Errorf("unknown member %q; members are %s", member, strings.Join(members, ", "))
		}
		note(st, member, wanted, on)
		var err error
		switch {
		case wanted.Name == fault.APIDown:
			err = f.setAPIDown(ctx, st, member, on)
		case wanted.OfNetwork():
			err = f.setNetwork(st, member)
		default:
			err = f.setPaths(ctx, st)
		}
		if err != nil {
			return fmt.Errorf("setting fault %s of %s: %w", wanted, member, err)
		}
		if err := st.Save(f.dir); err != nil {
			return err
		}
		f.progress.Say("%s: fault %s %s", member, wanted, map[bool]string{true: "on", false: "off"}[on])
		return nil
	})
}

// note changes the record in memory; it is saved once the fault is in effect.
func note(st *state.Fleet, member string, f fault.Fault, on bool) {
	if !on {
		delete(st.Faults[member], string(f.Name))
		if len(st.Faults[member]) == 0 {
			delete(st.Faults, member)
		}
		return
	}
	if st.Faults == nil {
		st.Faults = map[string]map[string]string{}
	}
	if st.Faults[member] == nil {
		st.Faults[member] = map[string]string{}
	}
	st.Faults[member][string(f.Name)] = f.Value
}

func (f *Fleet) setAPIDown(ctx context.Context, st *state.Fleet, member string, on bool) error {
	server := st.Component(plan.APIServer(member))
	if on {
		return server.End(ctx, restartGrace[server.Tier])
	}
	if server.State() != process.Dead {
		return nil
	}
	return newStarter(f, st, nil).start(ctx, server.Component)
}

// setPaths gives the relay what the record wants of it. If the relay does not
// take it, its file says again what it did before.
func (f *Fleet) setPaths(ctx context.Context, st *state.Fleet) error {
	file := f.path(plan.RelayFile)
	before, err := relay.ReadConfig(file)
	if err != nil {
		return err
	}
	wanted := relay.Config{Paths: slices.Clone(before.Paths)}
	for i := range wanted.Paths {
		p := &wanted.Paths[i]
		faults := st.Faults[p.Member]
		_, p.Cut = faults[string(fault.APIUnreachable)]
		p.Delay = faults[string(fault.APISlow)]
	}
	if err := wanted.Write(file); err != nil {
		return err
	}
	if c := st.Component(plan.Relay); c.State() != process.Running {
		err = fmt.Errorf("the relay is %s: `sandbox restart --dir %s %s`", c.State(), f.dir, plan.Relay)
	} else {
		err = relay.Reload(ctx, f.path(plan.RelaySocket))
	}
	if err != nil {
		return errors.Join(err, before.Write(file))
	}
	return nil
}
