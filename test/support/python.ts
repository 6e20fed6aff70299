import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** Whether this Python runs some code. */
export const runsPython = (program: string, code: string): boolean =>
  spawnSync(program, ['-c', code], { stdio: 'ignore' }).status === 0

/** A Python that runs the code. Debian's has the packages of Debian, regardless of the first python on the PATH. */
export const findPython = (code: string): string | undefined =>
  ['python3', '/usr/bin/python3'].find((program) => runsPython(program, code))

/** The sources of the Python client, for programs that run without an installed package. */
export const PYTHON_SOURCES = join(import.meta.dirname, '../../clients/python/src')

/**
 * The output of a program that gets `input` on standard input. By default it imports the client from its sources.
 * @throws Error with its errors if it fails.
 */
export async function runPython(
  program: string,
  code: string,
  input = '',
  more: Readonly<Record<string, string>> = { PYTHONPATH: PYTHON_SOURCES, PYTHONDONTWRITEBYTECODE: '1' },
): Promise<string> {
  const child = spawn(program, ['-c', code], { env: { ...process.env, ...more } })
  child.stdin.end(input)
  const [output, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  if (status !== 0) throw new Error(`the program ended with ${status}:\n${errors}`)
  return output
}

/** Runs each program of a list in its own namespace, and prints what each printed, or its error. */
const RUNNER = `
import contextlib, io, json, sys, traceback
results = []
for code in json.load(sys.stdin):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        results.append({"printed": printed.getvalue(), "error": None})
    except Exception:
        results.append({"printed": printed.getvalue(), "error": traceback.format_exc()})
print(json.dumps(results))
`

/** The output of each program, with its error. */
export const runPrograms = async (
  program: string,
  codes: readonly string[],
): Promise<readonly { readonly printed: string; readonly error: string | null }[]> =>
  JSON.parse(await runPython(program, RUNNER, JSON.stringify(codes)))

/** The Python samples of a Markdown page, for a service with this URL. */
export const toPythonSamples = (page: string, url: string): readonly string[] =>
  [...page.matchAll(/```python\n(?<code>.*?)```/gs)].map(({ groups }) =>
    (groups?.code ?? '').replaceAll(/https?:\/\/[^/"]+/g, url),
  )
