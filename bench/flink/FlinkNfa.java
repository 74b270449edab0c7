import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.configuration.SharedBufferCacheConfig;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.time.TimerService;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Flink's own NFA, without a cluster: patterns and events come in as lines of JSON, and what it finds goes out.
 * Time advances step by step from event to event, as with a watermark for every instant.
 *
 * <p>A task may ask for the number of matches only ("count"), take the events of the task before (no "events"), give
 * each name of "key" a state of its own, and be run as a job in a local cluster ("job": see FlinkJob).
 */
public final class FlinkNfa {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** An event as Flink likes it: a class with public fields and an empty constructor. */
    public static final class Event {
        public int number;
        public long time;
        public String name;
        public double price;
        public int key;

        public Event() {}

        Event(int number, JsonNode node) {
            this.number = number;
            time = node.get("ts").asLong();
            name = node.get("name").asText();
            price = node.get("price").asDouble();
            key = node.has("key") ? node.get("key").asInt() : 0;
        }
    }

    /** What an event has to pass: one of a few tests that both sides know. */
    private static final class Test extends IterativeCondition<Event> {
        private static final List<String> KINDS = List.of("name", "above", "sum below", "count", "above first");
        private final int kind;
        private final String text;
        private final double number;
        private final String step;

        Test(JsonNode node) {
            kind = KINDS.indexOf(node.get("test").asText());
            text = node.has("value") ? node.get("value").asText() : "";
            number = node.has("value") ? node.get("value").asDouble() : 0;
            step = node.has("step") ? node.get("step").asText() : "";
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            switch (kind) {
                case 0:
                    return event.name.equals(text);
                case 1:
                    return event.price > number;
                case 2: {
                    double sum = event.price;
                    for (Event taken : context.getEventsForPattern(step)) {
                        sum += taken.price;
                    }
                    return sum < number;
                }
                case 3: {
                    int count = 0;
                    for (Event taken : context.getEventsForPattern(step)) {
                        count++;
                    }
                    return count == (int) number;
                }
                case 4: {
                    Iterator<Event> taken = context.getEventsForPattern(step).iterator();
                    return taken.hasNext() && event.price > taken.next().price;
                }
                default:
                    throw new IllegalArgumentException("no such test");
            }
        }
    }

    static AfterMatchSkipStrategy skip(JsonNode node) {
        switch (node.get("skip").asText()) {
            case "skip_to_next":
                return AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first":
                return AfterMatchSkipStrategy.skipToFirst(node.get("step").asText());
            case "skip_to_last":
                return AfterMatchSkipStrategy.skipToLast(node.get("step").asText());
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    static Pattern<Event, Event> pattern(JsonNode chain, AfterMatchSkipStrategy skip) {
        Pattern<Event, Event> at = null;
        for (JsonNode part : chain) {
            String how = part.get("contiguity").asText();
            if (part.hasNonNull("group")) {
                Pattern<Event, Event> group = pattern(part.get("group"), skip);
                if (at == null) {
                    at = Pattern.begin(group, skip);
                } else if (how.equals("next")) {
                    at = at.next(group);
                } else if (how.equals("followed_by")) {
                    at = at.followedBy(group);
                } else {
                    at = at.followedByAny(group);
                }
            } else {
                String name = part.get("name").asText();
                if (at == null) {
                    at = Pattern.begin(name, skip);
                } else if (how.equals("next")) {
                    at = at.next(name);
                } else if (how.equals("followed_by")) {
                    at = at.followedBy(name);
                } else if (how.equals("followed_by_any")) {
                    at = at.followedByAny(name);
                } else if (how.equals("not_next")) {
                    at = at.notNext(name);
                } else {
                    at = at.notFollowedBy(name);
                }
                for (JsonNode test : part.get("tests")) {
                    at = test.get("or").asBoolean() ? at.or(new Test(test)) : at.where(new Test(test));
                }
            }
            at = quantified(at, part);
        }
        return at;
    }

    private static Pattern<Event, Event> quantified(Pattern<Event, Event> at, JsonNode part) {
        Duration between = part.hasNonNull("between") ? Duration.ofMillis(part.get("between").asLong()) : null;
        switch (part.get("rounds").asText()) {
            case "times":
                at = at.times(part.get("least").asInt(), part.get("most").asInt(), between);
                break;
            case "one_or_more":
                at = at.timesOrMore(part.get("least").asInt(), between);
                break;
            default:
        }
        switch (part.get("inner").asText()) {
            case "next":
                at = at.consecutive();
                break;
            case "followed_by_any":
                at = at.allowCombinations();
                break;
            default:
        }
        if (part.get("greedy").asBoolean()) {
            at = at.greedy();
        }
        if (part.get("optional").asBoolean()) {
            at = at.optional();
        }
        if (part.hasNonNull("until")) {
            at = at.until(new Test(part.get("until")));
        }
        if (part.hasNonNull("window")) {
            at = at.within(Duration.ofMillis(part.get("window").asLong()));
        }
        if (part.hasNonNull("gap")) {
            at = at.within(Duration.ofMillis(part.get("gap").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        }
        return at;
    }

    /** State in plain maps. */
    @SuppressWarnings("unchecked")
    private static KeyedStateStore store() {
        return (KeyedStateStore) Proxy.newProxyInstance(
                FlinkNfa.class.getClassLoader(),
                new Class<?>[] {KeyedStateStore.class},
                (proxy, method, arguments) -> {
                    Map<Object, Object> held = new HashMap<>();
                    return Proxy.newProxyInstance(
                            FlinkNfa.class.getClassLoader(),
                            new Class<?>[] {MapState.class},
                            (inner, called, given) -> {
                                switch (called.getName()) {
                                    case "get":
                                        return held.get(given[0]);
                                    case "put":
                                        held.put(given[0], given[1]);
                                        return null;
                                    case "putAll":
                                        held.putAll((Map<Object, Object>) given[0]);
                                        return null;
                                    case "remove":
                                        held.remove(given[0]);
                                        return null;
                                    case "contains":
                                        return held.containsKey(given[0]);
                                    case "entries":
                                        return held.entrySet();
                                    case "keys":
                                        return held.keySet();
                                    case "values":
                                        return held.values();
                                    case "iterator":
                                        return held.entrySet().iterator();
                                    case "isEmpty":
                                        return held.isEmpty();
                                    default:
                                        held.clear();
                                        return null;
                                }
                            });
                });
    }

    private static Map<String, List<Integer>> numbers(Map<String, List<Event>> match) {
        Map<String, List<Integer>> found = new HashMap<>();
        match.forEach((step, events) -> {
            List<Integer> taken = new ArrayList<>();
            events.forEach(event -> taken.add(event.number));
            found.put(step, taken);
        });
        return found;
    }

    /** The runs of one key. */
    private static final class Keyed {
        final SharedBuffer<Event> buffer = new SharedBuffer<>(store(), null, new SharedBufferCacheConfig());
        final NFAState state;
        long time;

        Keyed(NFA<Event> nfa) {
            state = nfa.createInitialNFAState();
        }
    }

    private static List<Event> events = new ArrayList<>();

    private static Map<String, Object> answer(JsonNode task) throws Exception {
        AfterMatchSkipStrategy skip = skip(task);
        Pattern<Event, Event> pattern = pattern(task.get("chain"), skip);
        if (task.hasNonNull("events")) {
            events = new ArrayList<>();
            for (JsonNode each : task.get("events")) {
                events.add(new Event(events.size(), each));
            }
        }
        boolean keyed = task.hasNonNull("keyed");
        if (task.hasNonNull("job")) {
            return FlinkJob.run(pattern, events, keyed);
        }
        NFA<Event> nfa = NFACompiler.compileFactory(pattern, true).createNFA();
        TimerService clock = () -> 0L;
        List<Object> matches = new ArrayList<>();
        List<Object> given = new ArrayList<>();
        Map<Integer, Keyed> keys = new HashMap<>();
        long begun = System.nanoTime();
        long worked = java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        for (Event event : events) {
            Keyed own = keys.get(keyed ? event.key : 0);
            if (own == null) {
                own = new Keyed(nfa);
                keys.put(keyed ? event.key : 0, own);
            }
            try (SharedBufferAccessor<Event> accessor = own.buffer.getAccessor()) {
                // With many keys, as Flink's operator does it: time passes for a key when one of its events comes.
                for (own.time = keyed ? event.time - 1 : own.time; own.time < event.time; own.time++) {
                    advance(nfa, accessor, own.state, own.time + 1, skip, matches, given);
                }
                for (Map<String, List<Event>> match
                        : nfa.process(accessor, own.state, event, event.time, skip, clock)) {
                    matches.add(numbers(match));
                }
            }
        }
        for (Keyed own : keys.values()) {
            try (SharedBufferAccessor<Event> accessor = own.buffer.getAccessor()) {
                for (long end = own.time + 100; own.time < end; own.time++) {
                    advance(nfa, accessor, own.state, own.time + 1, skip, matches, given);
                }
                if (keyed) {
                    advance(nfa, accessor, own.state, Long.MAX_VALUE, skip, matches, given);
                }
            }
        }
        Map<String, Object> found = new HashMap<>();
        worked = java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - worked;
        found.put("seconds", (System.nanoTime() - begun) / 1e9);
        found.put("processor", worked / 1e9);
        found.put("count", matches.size());
        if (!task.hasNonNull("count")) {
            found.put("matches", matches);
            found.put("given_up", given);
        }
        return found;
    }

    private static void advance(
            NFA<Event> nfa,
            SharedBufferAccessor<Event> accessor,
            NFAState state,
            long time,
            AfterMatchSkipStrategy skip,
            List<Object> matches,
            List<Object> given)
            throws Exception {
        Tuple2<Collection<Map<String, List<Event>>>, Collection<Tuple2<Map<String, List<Event>>, Long>>> passed =
                nfa.advanceTime(accessor, state, time, skip);
        for (Map<String, List<Event>> match : passed.f0) {
            matches.add(numbers(match));
        }
        for (Tuple2<Map<String, List<Event>>, Long> partial : passed.f1) {
            given.add(List.of(numbers(partial.f0), partial.f1));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> found;
            try {
                found = answer(JSON.readTree(line));
            } catch (Exception | StackOverflowError problem) {
                found = Map.of("error", problem.getClass().getSimpleName() + ": " + problem.getMessage());
            }
            System.out.println(JSON.writeValueAsString(found));
            System.out.flush();
        }
    }
}
