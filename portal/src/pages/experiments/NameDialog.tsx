import { useState } from "react";
import { Button, Dialog, ErrorNote, Field, Input } from "@/design";

/** Asks for one or two short texts: a new name, or a tag. */
export function NameDialog({
  title,
  fields,
  verb,
  onClose,
  onSave,
}: {
  title: string;
  fields: readonly { label: string; value: string; hint?: string; optional?: boolean }[];
  verb: string;
  onClose: () => void;
  onSave: (values: string[]) => Promise<unknown>;
}) {
  const [values, setValues] = useState(() => fields.map((f) => f.value));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const missing = fields.some((f, i) => !f.optional && (values[i] ?? "").trim() === "");
  const save = async () => {
    if (missing || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSave(values.map((v) => v.trim()));
      onClose();
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={busy} disabled={missing} onClick={() => void save()}>
            {verb}
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {fields.map((f, i) => (
          <Field key={f.label} label={f.label} hint={f.hint} optional={f.optional ?? false}>
            {(props) => (
              <Input
                {...props}
                value={values[i] ?? ""}
                onChange={(e) => setValues(values.map((v, j) => (j === i ? e.target.value : v)))}
              />
            )}
          </Field>
        ))}
        {error !== undefined && <ErrorNote error={error} />}
        {/* Enter in a field saves. */}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
