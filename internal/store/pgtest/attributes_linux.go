package pgtest

import "syscall"

// attributes has a server run as the user, and end with the test's process whatever ends that.
func attributes(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
}
