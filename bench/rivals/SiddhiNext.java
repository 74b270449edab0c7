import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The next event of each type, by key and within a window, with Siddhi in event time.
 *
 * <p>Usage: java SiddhiNext EVENTS MATCHES LENGTH WINDOW. EVENTS holds 64-bit little-endian numbers: the count n, then n
 * values each of time, key and type; MATCHES gets the times of each match.
 */
public final class SiddhiNext {
    private SiddhiNext() {}

    public static void main(String[] arguments) throws Exception {
        LongBuffer numbers =
                ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0]))).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        int count = Math.toIntExact(numbers.get(0));
        int length = Integer.parseInt(arguments[2]);
        StringBuilder steps = new StringBuilder("every e1=S[kind == 0]");
        StringBuilder chosen = new StringBuilder("e1.ts as t1");
        for (int step = 2; step <= length; step++) {
            steps.append(" -> e").append(step).append("=S[kind == ").append(step - 1).append("]");
            chosen.append(", e").append(step).append(".ts as t").append(step);
        }
        String app =
                "@app:playback define stream S (ts long, k long, kind int); partition with (k of S) begin from "
                        + steps + " within " + arguments[3] + " milliseconds select " + chosen + " insert into Found; end;";
        run(app, numbers, Math.min(count, 50_000), count, length);
        List<long[]> matches = new ArrayList<>();
        double seconds = run(app, numbers, count, count, length, matches);
        ByteBuffer out = ByteBuffer.allocate(8 * length * matches.size()).order(ByteOrder.LITTLE_ENDIAN);
        for (long[] match : matches) {
            for (long time : match) {
                out.putLong(time);
            }
        }
        Files.write(Path.of(arguments[1]), out.array());
        System.out.printf("{\"seconds\": %.6f, \"matches\": %d}%n", seconds, matches.size());
        System.exit(0);
    }

    private static void run(String app, LongBuffer numbers, int first, int count, int length) throws Exception {
        run(app, numbers, first, count, length, new ArrayList<>());
    }

    private static double run(
            String app, LongBuffer numbers, int first, int count, int length, List<long[]> matches) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(app);
        runtime.addCallback(
                "Found",
                new StreamCallback() {
                    @Override
                    public void receive(Event[] events) {
                        for (Event event : events) {
                            long[] match = new long[length];
                            for (int place = 0; place < length; place++) {
                                match[place] = (Long) event.getData(place);
                            }
                            matches.add(match);
                        }
                    }
                });
        runtime.start();
        InputHandler input = runtime.getInputHandler("S");
        long begun = System.nanoTime();
        for (int i = 0; i < first; i++) {
            long time = numbers.get(1 + i);
            Object[] data = {time, numbers.get(1 + count + i), (int) numbers.get(1 + 2 * count + i)};
            input.send(time + 1, data);
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        runtime.shutdown();
        return seconds;
    }
}
