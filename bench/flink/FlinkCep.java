import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Runs one pattern with Flink CEP over events held in memory, in event time, and prints what it took.
 *
 * <p>One source hands the events to as many slots as are asked for, by key.
 *
 * <p>Usage: java FlinkCep FILE NAME=VALUE ... with the names read in main. FILE holds 64-bit little-endian numbers: the
 * count n, then n values each of time, key, type, price and volume.
 *
 * <p>The clock runs from the first event that the source hands out to the end of the pattern operator, so the start of
 * the JVM and of the cluster are left out. A first run over some of the events warms up the JIT compiler.
 */
public final class FlinkCep {
    private static final long PRICE_STEP = 500;
    private static final long VOLUME_LIMIT = 150;

    /** An event as Flink likes it: a class with public fields and an empty constructor. */
    public static final class Event {
        public long ts;
        public long key;
        public int type;
        public int price;
        public int volume;
        public long handedOut;
    }

    // The mini cluster runs in this process, so its tasks see the same events and counters.
    private static Event[] events;
    private static volatile long firstEventNanos;
    private static volatile long endNanos;
    private static final LongAdder matches = new LongAdder();
    private static final LongAdder selected = new LongAdder();
    private static int slots;
    // Events per second that the source hands out at most (0: as fast as it goes), and how long matches took then.
    private static double rate;
    private static final ConcurrentLinkedQueue<Long> latencies = new ConcurrentLinkedQueue<>();

    private FlinkCep() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            options.put(parts[0], parts[1]);
        }
        events = read(Path.of(arguments[0]));
        slots = Integer.parseInt(options.get("slots"));
        String workload = options.get("workload");
        long window = Long.parseLong(options.get("window"));
        Pattern<Event, ?> pattern;
        String chosen = "";
        int relevantTypes = Integer.MAX_VALUE;
        if (workload.equals("sequence")) {
            int length = Integer.parseInt(options.get("length"));
            pattern = sequence(length, window);
            if (Boolean.parseBoolean(options.get("prefilter"))) {
                relevantTypes = length;
            }
        } else if (workload.equals("kleene")) {
            boolean contiguous = options.get("strategy").equals("partition_contiguity");
            String iterator = options.get("iterator");
            pattern = kleene(contiguous ? iterator : "p1", window);
            chosen = contiguous ? "" : iterator;
        } else {
            throw new IllegalArgumentException("no workload '" + workload + "': use sequence or kleene");
        }
        double wanted = Double.parseDouble(options.getOrDefault("rate", "0"));
        int warmUp = Math.min(events.length, Integer.parseInt(options.get("warm_up")));
        if (warmUp > 0) {
            run(pattern, chosen, relevantTypes, warmUp);
        }
        rate = wanted;
        latencies.clear();
        run(pattern, chosen, relevantTypes, events.length);
        System.out.printf(
                "{\"events\": %d, \"seconds\": %.6f, \"matches\": %d, \"selected\": %d%s}%n",
                events.length, (endNanos - firstEventNanos) / 1e9, matches.sum(), selected.sum(), percentiles());
    }

    /** Latencies from the moment a match's last event was handed out, in milliseconds; only at a fixed rate. */
    private static String percentiles() {
        if (rate <= 0 || latencies.isEmpty()) {
            return "";
        }
        long[] sorted = latencies.stream().mapToLong(Long::longValue).sorted().toArray();
        StringBuilder text = new StringBuilder();
        for (int percent : new int[] {50, 95, 99}) {
            double value = sorted[(int) Math.min(sorted.length - 1, sorted.length * (long) percent / 100)] / 1e6;
            text.append(String.format(", \"p%d_ms\": %.3f", percent, value));
        }
        return text.toString();
    }

    /** SASE: SEQ(type 0, type 1, ...) on one key, every combination (skip till any match). */
    private static Pattern<Event, ?> sequence(int length, long window) {
        Pattern<Event, Event> pattern = Pattern.<Event>begin("e0").where(SimpleCondition.of(event -> event.type == 0));
        for (int step = 1; step < length; step++) {
            int type = step;
            pattern = pattern.followedByAny("e" + step).where(SimpleCondition.of(event -> event.type == type));
        }
        return pattern.within(Duration.ofMillis(window));
    }

    /**
     * SASE+: STOCK+ a[], STOCK b with a[1].price % 500 = 0 and b.volume < 150, contiguous within the key.
     *
     * <p>Under skip till next match a group takes or passes every event and lives on after b, so a start and a b make
     * exactly one match. Flink's own relaxed Kleene would also leave the group early and wait for b past events it
     * should have taken. So that strategy is run as this pattern without condition on a[i] (p1), and the elements that
     * the iterator predicate passes over are dropped from each match (see take).
     */
    private static Pattern<Event, ?> kleene(String iterator, long window) {
        Pattern<Event, Event> rest =
                Pattern.<Event>begin("first")
                        .where(SimpleCondition.of(event -> event.price % PRICE_STEP == 0))
                        .next("rest");
        if (!iterator.equals("p1")) {
            rest = rest.where(new TakesNext(iterator));
        }
        return rest.oneOrMore()
                .consecutive()
                .optional()
                .next("b")
                .where(SimpleCondition.of(event -> event.volume < VOLUME_LIMIT))
                .within(Duration.ofMillis(window));
    }

    /** Whether a price may follow the prices taken so far: above the last one (p2) or above the lowest (p3). */
    private static boolean takes(String iterator, int price, int last, int lowest) {
        return iterator.equals("p2") ? price > last : price > lowest;
    }

    /** The iterator predicate inside the pattern. */
    private static final class TakesNext extends IterativeCondition<Event> {
        private final String iterator;

        TakesNext(String iterator) {
            this.iterator = iterator;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            int last = 0;
            int lowest = Integer.MAX_VALUE;
            for (String name : List.of("first", "rest")) {
                for (Event earlier : context.getEventsForPattern(name)) {
                    last = earlier.price;
                    lowest = Math.min(lowest, earlier.price);
                }
            }
            return takes(iterator, event.price, last, lowest);
        }
    }

    /** Counts matches and the events in them. */
    private static final class Count extends PatternProcessFunction<Event, Long> {
        private final String chosen;

        Count(String chosen) {
            this.chosen = chosen;
        }

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            matches.increment();
            if (rate > 0) {
                long last = 0;
                for (List<Event> part : match.values()) {
                    for (Event event : part) {
                        last = Math.max(last, event.handedOut);
                    }
                }
                latencies.add(System.nanoTime() - last);
            }
            if (chosen.isEmpty() || chosen.equals("p1")) {
                for (List<Event> part : match.values()) {
                    selected.add(part.size());
                }
            } else {
                selected.add(take(match).size() + 1);
            }
        }

        /** The group that the iterator predicate chooses from the contiguous events of the match. */
        private List<Event> take(Map<String, List<Event>> match) {
            List<Event> group = new ArrayList<>(match.get("first"));
            int last = group.get(0).price;
            int lowest = last;
            for (Event event : match.getOrDefault("rest", List.of())) {
                if (takes(chosen, event.price, last, lowest)) {
                    group.add(event);
                    last = event.price;
                    lowest = Math.min(lowest, last);
                }
            }
            return group;
        }

        @Override
        public void close() {
            endNanos = System.nanoTime();
        }
    }

    private static void run(Pattern<Event, ?> pattern, String chosen, int relevantTypes, long count) throws Exception {
        matches.reset();
        selected.reset();
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(slots);
        environment.getConfig().enableObjectReuse();
        DataGeneratorSource<Event> source =
                rate > 0
                        ? new DataGeneratorSource<>(
                                FlinkCep::event,
                                count,
                                RateLimiterStrategy.perSecond(rate),
                                TypeInformation.of(Event.class))
                        : new DataGeneratorSource<>(FlinkCep::event, count, TypeInformation.of(Event.class));
        WatermarkStrategy<Event> clock =
                WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((event, unused) -> event.ts);
        DataStream<Event> stream = environment.fromSource(source, clock, "events").setParallelism(1);
        if (relevantTypes < Integer.MAX_VALUE) {
            stream = stream.filter(event -> event.type < relevantTypes).setParallelism(1);
        }
        CEP.pattern(stream.keyBy(event -> event.key), pattern)
                .inEventTime()
                .process(new Count(chosen), Types.LONG)
                .sinkTo(new DiscardingSink<>());
        environment.execute();
    }

    private static Event event(long index) {
        if (index == 0) {
            firstEventNanos = System.nanoTime();
        }
        if (rate > 0) {
            events[(int) index].handedOut = System.nanoTime();
        }
        return events[(int) index];
    }

    private static Event[] read(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            LongBuffer numbers =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size())
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .asLongBuffer();
            int count = Math.toIntExact(numbers.get(0));
            Event[] read = new Event[count];
            for (int i = 0; i < count; i++) {
                Event event = new Event();
                event.ts = numbers.get(1 + i);
                event.key = numbers.get(1 + count + i);
                event.type = (int) numbers.get(1 + 2 * count + i);
                event.price = (int) numbers.get(1 + 3 * count + i);
                event.volume = (int) numbers.get(1 + 4 * count + i);
                read[i] = event;
            }
            return read;
        }
    }
}
