import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Work for the just-in-time compiler and the collector, in several threads: trees of objects that are built and soon are
 * garbage, null pointers and endless recursion met by faults, monitors and waits. One line a round: java Churn ROUNDS
 */
final class Churn {
    private record Node(Node left, Node right, int value) {
        static Node tree(int depth, int value) {
            return depth == 0 ? new Node(null, null, value) : new Node(tree(depth - 1, 2 * value), tree(depth - 1, 2 * value + 1), value);
        }

        long sum() {
            long sum = value;
            try {
                sum += left.sum() + right.sum();
            } catch (NullPointerException leaf) {
                sum ^= 1;
            }
            return sum;
        }
    }

    private static int depth;
    private static long baton;

    private static void recurse() {
        depth++;
        recurse();
    }

    /** Ends by the guard pages below the stack, which the virtual machine meets with SIGSEGV. */
    private static boolean overflows() {
        depth = 0;
        try {
            recurse();
        } catch (StackOverflowError e) {
            return depth > 100;
        }
        return false;
    }

    private static synchronized void pass(long turn) throws InterruptedException {
        while (baton != turn) Churn.class.wait();
        baton++;
        Churn.class.notifyAll();
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        ExecutorService workers = Executors.newFixedThreadPool(3);
        List<Node> kept = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            List<Future<Long>> sums = new ArrayList<>();
            baton = 0;
            for (int i = 0; i < 3; i++) {
                int seed = round * 3 + i;
                long turn = i;
                sums.add(workers.submit(() -> {
                    long sum = Node.tree(9, seed).sum();
                    pass(turn);
                    return sum;
                }));
            }
            long sum = 0;
            for (Future<Long> each : sums) sum += each.get();
            kept.add(Node.tree(6, round));
            if (kept.size() > 50) kept.remove(0);
            boolean overflowed = round % 20 == 0 && overflows();
            System.out.println(round + " " + sum + " " + kept.get(0).sum() + (overflowed ? " overflowed" : ""));
        }
        workers.shutdown();
    }
}
