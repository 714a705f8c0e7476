import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A TCP server with a thread for each connection: to each line "N" it answers "N TOTAL", TOTAL being the sum of that
 * connection's numbers. Each answer makes garbage, and meets a null pointer, which the virtual machine learns of by a
 * SIGSEGV of its own. "quit" ends it. java Server PORT
 */
final class Server {
    private static final AtomicInteger answered = new AtomicInteger();

    private record Text(String text) {}

    private static int lengthOf(Text text) {
        try {
            return text.text().length();
        } catch (NullPointerException e) {
            return -1;
        }
    }

    private static void churn(int number) {
        Map<Integer, Text> kept = new HashMap<>();
        for (int i = 0; i < 300; i++) kept.put(i % 50, i % 7 == 0 ? null : new Text("text " + number + i));
        int nulls = 0;
        for (Text text : kept.values()) nulls += lengthOf(text) < 0 ? 1 : 0;
        if (nulls != 7) throw new IllegalStateException("nulls: " + nulls);
    }

    private static void serve(Socket peer) {
        try (peer) {
            peer.setTcpNoDelay(true);
            BufferedReader lines = new BufferedReader(new InputStreamReader(peer.getInputStream()));
            long total = 0;
            for (String line; (line = lines.readLine()) != null; ) {
                if (line.equals("quit")) {
                    System.out.println("answered " + answered + " lines");
                    System.exit(0);
                }
                int number = Integer.parseInt(line);
                total += number;
                churn(number);
                answered.incrementAndGet();
                peer.getOutputStream().write((number + " " + total + "\n").getBytes());
            }
        } catch (IOException | RuntimeException e) {
            e.printStackTrace();
            System.exit(2);
        }
    }

    public static void main(String[] args) throws IOException {
        try (ServerSocket listener = new ServerSocket(Integer.parseInt(args[0]), 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket peer = listener.accept();
                new Thread(() -> serve(peer)).start();
            }
        }
    }
}
