import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;
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
 * A statement of Flink SQL with MATCH_RECOGNIZE over rows in memory, in event time.
 *
 * <p>Usage: java FlinkSqlRows ROWS STATEMENT SLOTS WARM. ROWS holds 8-byte numbers: the count, all times in
 * milliseconds, all keys, all kinds, all prices (as doubles). The columns are ts, k, kind, price and rowtime. Rows come
 * from memory one by one; a run over the first WARM rows goes before the one that is timed. The answer counts the
 * results and adds up their last two columns, which are whole numbers; it has the seconds from the first row to the
 * last result, and those that the processor worked in that time.
 */
public final class FlinkSqlRows {
    /** A row as Flink likes it: a class with public fields and an empty constructor. */
    public static final class Tick {
        public long ts;
        public long k;
        public int kind;
        // Boxed, that is nullable: over a column that cannot be NULL the planner takes LAST(price, 1) IS NULL for FALSE
        // before it runs, and a condition for the first row of a variable is never true.
        public Double price;
        public Instant at;
    }

    private static long[] times;
    private static long[] keys;
    private static int[] kinds;
    private static double[] prices;
    private static volatile long firstNanos;
    private static volatile long endNanos;
    private static volatile long firstWork;
    private static volatile long endWork;
    private static final AtomicLong results = new AtomicLong();
    private static final AtomicLong sum = new AtomicLong();

    private FlinkSqlRows() {}

    public static void main(String[] arguments) throws Exception {
        read(Path.of(arguments[0]));
        String statement = Files.readString(Path.of(arguments[1]));
        int slots = Integer.parseInt(arguments[2]);
        run(statement, Math.min(times.length, Integer.parseInt(arguments[3])), slots);
        run(statement, times.length, slots);
        double seconds = (endNanos - firstNanos) / 1e9;
        double work = (endWork - firstWork) / 1e9;
        System.out.printf(
                "{\"seconds\": %.6f, \"work\": %.6f, \"matches\": %d, \"sum\": %d}%n",
                seconds, work, results.get(), sum.get());
        System.exit(0);
    }

    private static void read(Path path) throws Exception {
        try (FileChannel channel = FileChannel.open(path)) {
            ByteBuffer head = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
            channel.read(head, 0);
            int count = Math.toIntExact(head.getLong(0));
            times = new long[count];
            keys = new long[count];
            kinds = new int[count];
            prices = new double[count];
            long[] buffer = new long[count];
            longs(channel, 8, times);
            longs(channel, 8 + 8L * count, keys);
            longs(channel, 8 + 16L * count, buffer);
            for (int i = 0; i < count; i++) {
                kinds[i] = (int) buffer[i];
            }
            longs(channel, 8 + 24L * count, buffer);
            for (int i = 0; i < count; i++) {
                prices[i] = Double.longBitsToDouble(buffer[i]);
            }
        }
    }

    private static void longs(FileChannel channel, long offset, long[] into) throws Exception {
        channel.map(FileChannel.MapMode.READ_ONLY, offset, 8L * into.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .asLongBuffer()
                .get(into);
    }

    private static void run(String statement, long count, int slots) throws Exception {
        results.set(0);
        sum.set(0);
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(slots);
        environment.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        DataGeneratorSource<Tick> source =
                new DataGeneratorSource<>(FlinkSqlRows::tick, count, TypeInformation.of(Tick.class));
        WatermarkStrategy<Tick> clock =
                WatermarkStrategy.<Tick>forMonotonousTimestamps().withTimestampAssigner((tick, unused) -> tick.ts);
        DataStream<Tick> stream = environment.fromSource(source, clock, "ticks").setParallelism(1);
        Schema schema =
                Schema.newBuilder()
                        .columnByMetadata("rowtime", "TIMESTAMP_LTZ(3)")
                        .watermark("rowtime", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView("ticks", stream, schema);
        tables.toDataStream(tables.sqlQuery(statement)).map(new Count()).sinkTo(new DiscardingSink<>());
        environment.execute();
    }

    /** Counts the results and adds up their last two columns. */
    private static final class Count extends RichMapFunction<Row, Long> {
        @Override
        public Long map(Row row) {
            results.incrementAndGet();
            int last = row.getArity() - 1;
            sum.addAndGet((Long) row.getField(last - 1) + (Long) row.getField(last));
            return 0L;
        }

        @Override
        public void close() {
            endNanos = System.nanoTime();
            endWork = workNanos();
        }
    }

    /** What the processor worked for this process, all threads together. */
    private static long workNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static Tick tick(long index) {
        if (index == 0) {
            firstNanos = System.nanoTime();
            firstWork = workNanos();
        }
        int at = (int) index;
        Tick tick = new Tick();
        tick.ts = times[at];
        tick.k = keys[at];
        tick.kind = kinds[at];
        tick.price = prices[at];
        tick.at = Instant.ofEpochMilli(times[at]);
        return tick;
    }
}
