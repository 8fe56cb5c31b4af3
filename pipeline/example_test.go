package pipeline_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/perseus-energy/perseus/pipeline"
)

func ExampleBuild() {
	o, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := o.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	rank, action := o.Op(20)
	fmt.Printf("%d ops, %d dependencies; op 20 is %v on rank %d: a %s\n", g.Ops, g.Dependencies, action, rank, action.Kind.Instruction())
	fmt.Println(o.Peaks()[0].Activations, "activations live on rank 0")
	// Output:
	// 64 ops, 132 dependencies; op 20 is 1F3 on rank 1: a forward
	// 4 activations live on rank 0
}

func ExampleBuild_unknown() {
	_, err := pipeline.Build("interleaved1f1", pipeline.Size{Ranks: 4, Microbatches: 8})
	fmt.Println(strings.SplitAfter(err.Error(), "?")[0])
	_, err = pipeline.Build("dualpipe", pipeline.Size{Ranks: 4, Microbatches: 6})
	fmt.Println(err)
	// Output:
	// unknown schedule "interleaved1f1": did you mean "interleaved-1f1b"?
	// dualpipe: 6 microbatches on 4 ranks: their number must be even and at least 8, twice the ranks
}

func ExampleOrder_Picture() {
	o, err := pipeline.Build("zb-h1", pipeline.Size{Ranks: 4, Microbatches: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	picture, err := o.Picture()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(picture)
	// Output:
	// 0 |F0 F1 F2 F3          I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5
	// 1 |   F0 F1 F2       I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 I4 W3 I5 W4 W5
	// 2 |      F0 F1    I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
	// 3 |         F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5
	// F forward 1, I input-gradient 1, W weight-gradient 1
	// span 21, idle 14.2 %
}

func ExampleOrder_WriteCSV() {
	o, err := pipeline.Build("dualpipev", pipeline.Size{Ranks: 2, Microbatches: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := o.WriteCSV(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1),(3F2;0B0),3B2,(3F3;0B1),3B3,0I2,0W2,0I3,0W3
	// 1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0),(1F3;2B1),(2F3;1B1),2B2,1B2,2I3,1I3,2W3,1W3
}

func ExampleReadCSV() {
	_, err := pipeline.ReadCSV(strings.NewReader("0F0,0F1,0B0,0B1\n1F0,1BW0,1F1,1BW1\n"), "old.csv")
	fmt.Println(err)
	o, err := pipeline.ReadCSV(strings.NewReader("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), "new.csv")
	fmt.Println(o.Size.Ranks, "ranks,", o.Size.Microbatches, "microbatches,", err)
	// Output:
	// old.csv:2: cell 2: action "1BW0": BW is PyTorch's notation of before November 2024, in which B was the input gradient; today the full backward is B and the input gradient I: write 1B0 here, and I for each of the file's B
	// 2 ranks, 2 microbatches, <nil>
}
