package agent

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection, as the kernel knows it.
type peer struct {
	pid    int32
	uid    uint32
	gid    uint32
	groups []uint32
}

func peerOf(c *net.UnixConn) (p peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p, fmt.Errorf("look at the peer: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		p = peer{pid: cred.Pid, uid: cred.Uid, gid: cred.Gid}
		p.groups = peerGroups(fd)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return p, fmt.Errorf("look at the peer: %w", err)
	}
	return p, nil
}

// peerGroups returns the supplementary groups; none where the kernel does not tell, or more than 1,024.
func peerGroups(fd uintptr) []uint32 {
	groups := make([]uint32, 1024)
	size := uint32(4 * len(groups))
	_, _, e := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return nil
	}
	return groups[:size/4]
}

// member tells whether the peer may drive GPUs: root, the agent's own user, and members of the group, if there is one.
func (p peer) member(group int) bool {
	if p.uid == 0 || p.uid == uint32(os.Geteuid()) {
		return true
	}
	return group > 0 && (p.gid == uint32(group) || slices.Contains(p.groups, uint32(group)))
}

// session names the process: the same for each connection of one, another for each process since the machine was made.
func (p peer) session() string {
	begun := "?"
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)); err == nil {
		// The name may hold anything, so fields are counted behind its closing bracket.
		if i := strings.LastIndexByte(string(text), ')'); i >= 0 {
			if f := strings.Fields(string(text)[i+1:]); len(f) > 19 {
				begun = f[19]
			}
		}
	}
	return fmt.Sprintf("%.8s-%d-%s", bootID(), p.pid, begun)
}
