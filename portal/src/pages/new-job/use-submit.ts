import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { toast } from "@/design";
import { plural } from "@/lib/format";
import { submitJob } from "./submit";

/** Submits, and goes to what was made. */
export function useSubmit(onDone: () => void) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: ({ text, hold }: { text: string; hold: boolean }) => submitJob(text, hold),
    onSuccess: (made) => {
      onDone();
      for (const noun of ["jobs", "queues", "gpus", "schedules"])
        void client.invalidateQueries({ queryKey: [noun] });
      if (made.id) {
        toast(
          made.elements > 1
            ? `${made.name}: ${plural(made.elements, "run")} submitted`
            : `${made.name} submitted`,
        );
        void navigate({ to: "/jobs/$job", params: { job: made.id } });
      } else {
        toast(`The schedule ${made.schedule ?? made.name} was made`);
        void navigate({ to: "/jobs" });
      }
    },
  });
}
