import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * The next event of each type, by key and within a window, with Flink SQL's MATCH_RECOGNIZE in event time.
 *
 * <p>Usage: java FlinkSqlNext EVENTS MATCHES LENGTH WINDOW SLOTS; files as SiddhiNext has them. A time unit is a
 * millisecond. Events of other types are dropped in front of the pattern, as a careful user would.
 */
public final class FlinkSqlNext {
    /** An event as Flink likes it: a class with public fields and an empty constructor. */
    public static final class Event {
        public long ts;
        public long k;
        public int kind;
        public Instant at;
    }

    private static Event[] events;
    private static volatile long firstEventNanos;
    private static volatile long endNanos;
    private static final Queue<long[]> matches = new ConcurrentLinkedQueue<>();

    private FlinkSqlNext() {}

    public static void main(String[] arguments) throws Exception {
        LongBuffer numbers =
                ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0]))).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        int count = Math.toIntExact(numbers.get(0));
        int length = Integer.parseInt(arguments[2]);
        events = new Event[count];
        for (int i = 0; i < count; i++) {
            Event event = new Event();
            event.ts = numbers.get(1 + i);
            event.k = numbers.get(1 + count + i);
            event.kind = (int) numbers.get(1 + 2 * count + i);
            event.at = Instant.ofEpochMilli(event.ts);
            events[i] = event;
        }
        String statement = statement(length, Long.parseLong(arguments[3]));
        int slots = Integer.parseInt(arguments[4]);
        run(statement, Math.min(count, 50_000), length, slots);
        run(statement, count, length, slots);
        ByteBuffer out = ByteBuffer.allocate(8 * length * matches.size()).order(ByteOrder.LITTLE_ENDIAN);
        for (long[] match : matches) {
            for (long time : match) {
                out.putLong(time);
            }
        }
        Files.write(Path.of(arguments[1]), out.array());
        double seconds = (endNanos - firstEventNanos) / 1e9;
        System.out.printf("{\"seconds\": %.6f, \"matches\": %d}%n", seconds, matches.size());
        System.exit(0);
    }

    private static String statement(int length, long window) {
        StringBuilder measures = new StringBuilder();
        StringBuilder pattern = new StringBuilder();
        StringBuilder define = new StringBuilder();
        for (int step = 0; step < length; step++) {
            String comma = step == 0 ? "" : ", ";
            measures.append(comma).append("E").append(step).append(".ts AS t").append(step);
            // A gap holds no event of the step that it waits for: Flink may prefer a later one that ends the match as well.
            pattern.append(step == 0 ? "" : " X" + step + "* ").append("E").append(step);
            define.append(step == 0 ? "" : ", X" + step + " AS X" + step + ".kind <> " + step);
            define.append(comma).append("E").append(step).append(" AS E").append(step).append(".kind = ").append(step);
        }
        String interval = String.format("INTERVAL '%d.%03d' SECOND(6, 3)", window / 1000, window % 1000);
        return "SELECT * FROM (SELECT * FROM events WHERE kind < " + length + ") MATCH_RECOGNIZE (PARTITION BY k"
                + " ORDER BY rowtime MEASURES " + measures + " ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN ("
                + pattern + ") WITHIN " + interval + " DEFINE " + define + ")";
    }

    private static void run(String statement, long count, int length, int slots) throws Exception {
        matches.clear();
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(slots);
        environment.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        DataGeneratorSource<Event> source =
                new DataGeneratorSource<>(FlinkSqlNext::event, count, TypeInformation.of(Event.class));
        WatermarkStrategy<Event> clock =
                WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((event, unused) -> event.ts);
        DataStream<Event> stream = environment.fromSource(source, clock, "events").setParallelism(1);
        Schema schema =
                Schema.newBuilder()
                        .columnByMetadata("rowtime", "TIMESTAMP_LTZ(3)")
                        .watermark("rowtime", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView("events", stream, schema);
        tables.toDataStream(tables.sqlQuery(statement)).map(new Keep(length)).sinkTo(new DiscardingSink<>());
        environment.execute();
    }

    /** Keeps the times of each match; the first column is the key. */
    private static final class Keep extends RichMapFunction<Row, Long> {
        private final int length;

        Keep(int length) {
            this.length = length;
        }

        @Override
        public Long map(Row row) {
            long[] match = new long[length];
            for (int place = 0; place < length; place++) {
                match[place] = (Long) row.getField(1 + place);
            }
            matches.add(match);
            return match[0];
        }

        @Override
        public void close() {
            endNanos = System.nanoTime();
        }
    }

    private static Event event(long index) {
        if (index == 0) {
            firstEventNanos = System.nanoTime();
        }
        return events[(int) index];
    }
}
