import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { answerDevice, deviceRequest, useMe } from "@/api/session";
import { Card } from "@/app/SignIn";
import { Button, ErrorNote, Facts, Field, Input, Mono, Skeleton, Time } from "@/design";

const route = getRouteApi("/device");

/** `berth login` shows a code; here it is looked at and approved by whoever is signed in. */
export default function DevicePage() {
  const { code } = route.useSearch();
  useEffect(() => {
    document.title = "Sign in to the command line · Berth";
  }, []);
  return (
    <Card title="Sign in to the command line">{code ? <Approve code={code} /> : <Enter />}</Card>
  );
}

function Enter() {
  const navigate = route.useNavigate();
  const [code, setCode] = useState("");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (code.trim()) void navigate({ search: { code: code.trim().toUpperCase() } });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Field label="Code" hint="The code that berth login shows">
        {(field) => (
          <Input
            {...field}
            mono
            autoFocus
            placeholder="ABCD-EFGH"
            value={code}
            onChange={(e) => setCode(e.target.value)}
            className="h-9!"
          />
        )}
      </Field>
      <Button type="submit" look="primary" disabled={!code.trim()} className="h-9!">
        Continue
      </Button>
    </form>
  );
}

function Approve({ code }: { code: string }) {
  const me = useMe();
  const asked = useQuery({
    queryKey: ["session", "device", code],
    queryFn: ({ signal }) => deviceRequest(code, signal),
    retry: false,
  });
  const answer = useMutation({ mutationFn: (approve: boolean) => answerDevice(code, approve) });

  if (answer.isSuccess)
    return (
      <p role="status">
        {answer.variables
          ? "Approved. The command line is signed in; this page can be closed."
          : "Refused. Nothing was signed in."}
      </p>
    );
  if (asked.error) return <ErrorNote error={asked.error} onRetry={() => void asked.refetch()} />;
  return (
    <div className="flex flex-col gap-4">
      <p
        className="rounded-md border border-line bg-surface py-4 text-center font-mono font-semibold text-20 tracking-[0.12em]"
        aria-label={`Code ${code.split("").join(" ")}`}
      >
        {code}
      </p>
      {asked.data ? (
        <Facts
          items={[
            ["Asked by", asked.data.client],
            ["From", <Mono key="f">{asked.data.from}</Mono>],
            ["Asked", <Time key="a" at={asked.data.created_at} />],
            ["Ends", <Time key="e" at={asked.data.expires_at} />],
            ["Signs in as", <bdi key="m">{me?.user}</bdi>],
          ]}
        />
      ) : (
        <Skeleton height={112} />
      )}
      <p className="text-muted">
        Approve only if you ran <code>berth login</code> yourself a moment ago and it shows this
        very code.
      </p>
      {answer.error && <ErrorNote error={answer.error} />}
      <div className="flex gap-2">
        <Button
          look="primary"
          className="h-9! flex-1"
          disabled={!asked.data}
          busy={answer.isPending && answer.variables}
          onClick={() => answer.mutate(true)}
        >
          Approve
        </Button>
        <Button
          className="h-9! flex-1"
          disabled={!asked.data}
          busy={answer.isPending && !answer.variables}
          onClick={() => answer.mutate(false)}
        >
          Refuse
        </Button>
      </div>
    </div>
  );
}
