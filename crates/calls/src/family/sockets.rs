//! Sockets.

use crate::Amount::{Low, Whole};
use crate::Interrupted::RestartUnlessTimeout;
use crate::Len::{Bytes, Fixed, Items, Message, Messages, Word};
use crate::RingOp::{Accept, Bind, Connect, Listen, Recv, Recvmsg, Send, Sendmsg, Shutdown, Socket, UringCmd};
use crate::Witness;

rows! {
    41 socket Open .ring(Socket);
    42 connect Once .fd(0) .waits(RestartUnlessTimeout) .ring(Connect) .witness(Witness::Connected)
        .note("a second one answers EISCONN, EALREADY or the outcome of the first; getpeername or SO_ERROR tells; on a \
            datagram socket it only sets the peer, again the same");
    43 accept Input .fd(0) .waits(RestartUnlessTimeout) .ring(Accept) .out(1, Word(2)) .out(2, Fixed(4));
    44 sendto Output .fd(0) .waits(RestartUnlessTimeout) .ring(Send)
        .note("with an address: SENDMSG where SEND takes none");
    45 recvfrom Input .fd(0) .waits(RestartUnlessTimeout) .decided_by(3) .ring(Recv)
        .out(1, Bytes(Whole(2))) .out(4, Word(5)) .out(5, Fixed(4))
        .note("MSG_PEEK takes nothing; with an address: RECVMSG, as RECV gives none");
    46 sendmsg Output .fd(0) .waits(RestartUnlessTimeout) .ring(Sendmsg);
    47 recvmsg Input .fd(0) .waits(RestartUnlessTimeout) .decided_by(2) .ring(Recvmsg) .out(1, Message)
        .note("MSG_PEEK takes nothing; SCM_RIGHTS makes descriptors");
    48 shutdown Once .fd(0) .ring(Shutdown) .witness(Witness::Shut)
        .note("a second one answers ENOTCONN where the first ended a listener, or a connection that the peer has closed, too");
    49 bind Once .fd(0) .ring(Bind) .witness(Witness::Bound)
        .note("a second one answers EINVAL; getsockname tells; a Unix socket's path exists after");
    50 listen Redo .fd(0) .ring(Listen) .note("the same backlog set again");
    51 getsockname Pure .fd(0) .out(1, Word(2)) .out(2, Fixed(4));
    52 getpeername Pure .fd(0) .out(1, Word(2)) .out(2, Fixed(4));
    53 socketpair Open .out(3, Fixed(8));
    54 setsockopt Redo .fd(0) .decided_by(2) .ring(UringCmd)
        .note("the same value set again; to join or leave a multicast group, to detach a filter, to begin TLS answers with an error the \
            second time: getsockopt tells");
    55 getsockopt Input .fd(0) .decided_by(2) .ring(UringCmd) .out(3, Word(4)) .out(4, Fixed(4))
        .note("SO_ERROR takes the pending error away; every other option is Pure; TCP_ZEROCOPY_RECEIVE maps pages");
    288 accept4 Input .fd(0) .waits(RestartUnlessTimeout) .ring(Accept) .out(1, Word(2)) .out(2, Fixed(4));
    299 recvmmsg Input .fd(0) .waits(RestartUnlessTimeout) .decided_by(3) .ring(Recvmsg) .out(1, Messages(Low(2)))
        .out(4, Fixed(16))
        .note("one RECVMSG a message; the remaining time is written back");
    307 sendmmsg Output .fd(0) .waits(RestartUnlessTimeout) .ring(Sendmsg) .out(1, Items(Low(2), 64))
        .note("one SENDMSG a message; the kernel writes each msg_len");
}
