package parallel_test

import (
	"fmt"

	"github.com/perseus-energy/perseus/parallel"
)

func ExampleNew() {
	g, err := parallel.New(parallel.Degrees{TP: 2, DP: 2, PP: 4}, "tp-cp-ep-pp-dp", 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", g.Dense(5))
	fmt.Println(g.Group(2, 1), "run the ops of pipeline rank 2 in the second pipeline")
	_, err = parallel.New(parallel.Degrees{TP: 2, DP: 3, PP: 4}, "", 16)
	fmt.Println(err)
	// Output:
	// {TP:1 CP:0 DP:0 PP:2}
	// [12 13] run the ops of pipeline rank 2 in the second pipeline
	// world size 16 is not tp·cp·dp·pp = 2·1·3·4 = 24
}
