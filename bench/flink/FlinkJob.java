import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * A pattern as Flink's users run it: CEP.pattern on a stream in event time, in a local cluster with one slot.
 *
 * <p>The clock runs from the first event that the source hands out to the end of the pattern operator, so the start of
 * the cluster and of the job are left out. Events are in memory; matches are counted and thrown away.
 */
final class FlinkJob {
    // The cluster runs in this process, so its tasks see the same events and counters.
    private static List<FlinkNfa.Event> events;
    private static volatile long firstEventNanos;
    private static volatile long endNanos;
    private static final LongAdder matches = new LongAdder();

    private FlinkJob() {}

    static Map<String, Object> run(
            Pattern<FlinkNfa.Event, FlinkNfa.Event> pattern, List<FlinkNfa.Event> given, boolean keyed)
            throws Exception {
        events = given;
        matches.reset();
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.getConfig().enableObjectReuse();
        DataGeneratorSource<FlinkNfa.Event> source =
                new DataGeneratorSource<>(FlinkJob::event, events.size(), TypeInformation.of(FlinkNfa.Event.class));
        WatermarkStrategy<FlinkNfa.Event> clock =
                WatermarkStrategy.<FlinkNfa.Event>forMonotonousTimestamps()
                        .withTimestampAssigner((event, unused) -> event.time);
        DataStream<FlinkNfa.Event> stream = environment.fromSource(source, clock, "events").setParallelism(1);
        CEP.pattern(keyed ? stream.keyBy(event -> event.key) : stream, pattern)
                .inEventTime()
                .process(new Count(), Types.LONG)
                .sinkTo(new DiscardingSink<>());
        environment.execute();
        return Map.of("seconds", (endNanos - firstEventNanos) / 1e9, "count", matches.sum());
    }

    private static FlinkNfa.Event event(long index) {
        if (index == 0) {
            firstEventNanos = System.nanoTime();
        }
        return events.get((int) index);
    }

    /** Counts matches. */
    private static final class Count extends PatternProcessFunction<FlinkNfa.Event, Long> {
        @Override
        public void processMatch(Map<String, List<FlinkNfa.Event>> match, Context context, Collector<Long> out) {
            matches.increment();
        }

        @Override
        public void close() {
            endNanos = System.nanoTime();
        }
    }
}
