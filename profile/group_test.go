package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/unit"
)

// TestGroups has context- and expert-parallel ranks in columns of their own: all
// work together, the slowest sets the time, and all energies count.
func TestGroups(t *testing.T) {
	var b strings.Builder
	b.WriteString("rank,dp_rank,pp_rank,tp_rank,cp_rank,ep_rank,stage,instruction,frequency,time,energy\n")
	rank := 0
	for dp := range 2 {
		for ep := range 2 {
			for cp := range 2 {
				for tp := range 2 {
					fmt.Fprintf(&b, "%d,%d,0,%d,%d,%d,0,forward,1000,%d.5,%d\n", rank, dp, tp, cp, ep, 1+tp+2*cp, 100*(1+ep))
					rank++
				}
			}
		}
	}
	p, err := Read(strings.NewReader(b.String()), "p.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.Options(0, "forward")
	if err != nil || p.GPUsPerStage != 8 || len(o) != 1 || o[0].Time != 4500*unit.Millisecond || o[0].Energy != 1200*1e12 {
		t.Errorf("%d GPUs, %+v, %v", p.GPUsPerStage, o, err)
	}

	for name, tt := range map[string]struct{ text, want string }{
		"a member is missing": {
			"rank,dp_rank,pp_rank,tp_rank,cp_rank,stage,instruction,frequency,time,energy\n0,0,0,0,0,0,f,1000,1,100\n1,0,0,1,0,0,f,1000,1,100\n3,0,0,1,1,0,f,1000,1,100\n",
			"member (tp_rank, then cp_rank, then ep_rank) 2 are missing",
		},
		"not beside the others": {
			"cp_rank,stage,instruction,frequency,time,energy\n0,0,f,1000,1,100\n",
			"there is cp_rank, but not rank, dp_rank, pp_rank and tp_rank",
		},
		"two places": {
			"rank,dp_rank,pp_rank,tp_rank,cp_rank,stage,instruction,frequency,time,energy\n0,0,0,0,0,0,f,1000,1,100\n0,0,0,0,1,0,f,1000,1,100\n",
			"rank 0 has dp_rank 0, pp_rank 0, tp_rank 0, cp_rank 1 and ep_rank 0 here, but dp_rank 0, pp_rank 0 and tp_rank 0 in line 2",
		},
		"no number": {
			"rank,dp_rank,pp_rank,tp_rank,cp_rank,stage,instruction,frequency,time,energy\n0,0,0,0,x,0,f,1000,1,100\n", `cp_rank "x"`,
		},
	} {
		if _, err := Read(strings.NewReader(tt.text), "p.csv", Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
