package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// SysAdmin tells whether this process has the capability that drivers ask for before they change a GPU. It reads
// /proc/self/status; where there is none, it goes by the effective user.
func SysAdmin() (held bool, by string) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		id := os.Geteuid()
		return id == 0, fmt.Sprintf("the effective user is %d", id)
	}
	return sysAdmin(string(status))
}

func sysAdmin(status string) (held bool, by string) {
	for line := range strings.Lines(status) {
		mask, found := strings.CutPrefix(line, "CapEff:")
		if !found {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil {
			break
		}
		const sysAdminBit = 21
		if bits>>sysAdminBit&1 != 0 {
			return true, "this process has CAP_SYS_ADMIN"
		}
		return false, "this process does not have CAP_SYS_ADMIN"
	}
	return false, "the capabilities of this process cannot be read in /proc/self/status"
}
