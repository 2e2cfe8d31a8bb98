import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Runs an app of Siddhi over the events of a file, several times: SiddhiRunner APP EVENTS ANSWERS ROUNDS. */
public class SiddhiRunner {
    private static double cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    public static void main(String[] arguments) throws Exception {
        List<Long> times = new ArrayList<>();
        List<Object[]> events = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[1]))) {
            String[] cells = line.split(",");
            times.add(Long.parseLong(cells[0]));
            events.add(new Object[] {cells[1], cells[2], Integer.parseInt(cells[3]), Integer.parseInt(cells[4])});
        }
        double before = cpu();
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime app = manager.createSiddhiAppRuntime(Files.readString(Path.of(arguments[0])));
        List<Object[]> answers = new ArrayList<>();
        app.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] found) {
                for (Event event : found) answers.add(event.getData());
            }
        });
        app.start();
        System.out.println("ready " + (cpu() - before));
        InputHandler input = app.getInputHandler("S");
        long span = times.get(times.size() - 1) + 60_000;
        for (int round = 0; round < Integer.parseInt(arguments[3]); round++) {
            double start = cpu();
            for (int place = 0; place < events.size(); place++) {
                input.send(times.get(place) + round * span, events.get(place));
            }
            System.out.println("round " + (cpu() - start));
            if (round == 0) {
                try (PrintWriter out = new PrintWriter(arguments[2])) {
                    for (Object[] one : answers) out.println(one[0] + "," + one[1] + "," + one[2]);
                }
            }
            answers.clear();
        }
        app.shutdown();
        manager.shutdown();
        System.exit(0);
    }
}
