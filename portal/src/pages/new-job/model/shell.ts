/** Words for a POSIX shell. */

/** Quoted only where it must be. */
export function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

const PLAIN = /^[\w@%+=:,./-]+$/;
/** Words that only a shell knows: as a program they are not there, or do nothing. */
const BUILTIN = new Set(
  "alias bg break case cd command continue declare do done elif else esac eval exec exit export fi for function if in let local popd pushd read return select set shift shopt source then time trap type ulimit umask unset until wait while . :".split(
    " ",
  ),
);

/** A script as the words of one program, where a shell would do nothing else with it. */
export function simpleWords(script: string): string[] | undefined {
  const text = script.trim();
  if (text === "" || text.includes("\n")) return undefined;
  const words = text.split(/[ \t]+/);
  const first = words[0] as string;
  if (!words.every((w) => PLAIN.test(w)) || first.includes("=") || BUILTIN.has(first))
    return undefined;
  return words;
}
