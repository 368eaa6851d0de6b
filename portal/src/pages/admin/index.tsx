import { getRouteApi } from "@tanstack/react-router";
import { useMayFor } from "@/api/session";
import { EmptyState } from "@/design";
import { Audit } from "./Audit";
import { Health } from "./Health";
import { Section } from "./Layout";
import { People } from "./People";
import { PolicyAndQueues } from "./Policy";
import { Schedules } from "./Schedules";
import { Secrets } from "./Secrets";
import { Sessions } from "./Sessions";
import type { AdminSearch } from "./search";
import { SECTIONS } from "./sections";
import { Teams } from "./Teams";
import { Tokens } from "./Tokens";

const route = getRouteApi("/admin");

export default function AdminPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const may = useMayFor();
  const change = (to: AdminSearch) => void navigate({ search: (old) => ({ ...old, ...to }) });
  const id = search.tab ?? "teams";
  const section = SECTIONS.find((s) => s.id === id) ?? SECTIONS[0];
  const allowed = may(section.permission);
  if (!allowed.ok)
    return (
      <Section id={id} command="berth whoami">
        <EmptyState title="This is not for you to see">{allowed.reason}</EmptyState>
      </Section>
    );
  switch (id) {
    case "teams":
      return <Teams />;
    case "people":
      return <People />;
    case "tokens":
      return <Tokens />;
    case "sessions":
      return <Sessions />;
    case "secrets":
      return <Secrets />;
    case "policy":
      return <PolicyAndQueues />;
    case "schedules":
      return <Schedules />;
    case "audit":
      return <Audit search={search} onSearch={change} />;
    case "health":
      return <Health />;
  }
}
