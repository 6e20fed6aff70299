import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isMain } from '../shared/process.ts'
import { ROOT, run } from './run.ts'

const CLIENT = join(ROOT, 'clients/python')

/** Generates the operations and types of the Python client in its sources. */
export function makePythonClient(): void {
  run(
    ['--import', 'tsx', join(ROOT, 'tools/python-client.ts')],
    'the operations of the Python client were not generated',
  )
}

/** A Python with the build tools; setuptools must be imported before pip. Debian's has the packages of Debian, regardless of the first python on the PATH. */
export const findBuildPython = (): string | undefined =>
  ['python3', '/usr/bin/python3'].find(
    (program) => spawnSync(program, ['-c', 'import setuptools, wheel, pip']).status === 0,
  )

/**
 * Builds the wheel of the Python client in a folder, without a network.
 * @throws Error with the output of pip.
 */
export function buildPythonClient(into: string, python = findBuildPython()): void {
  if (python === undefined)
    throw new Error('no python3 with pip, setuptools and wheel: install python3-pip python3-wheel')
  makePythonClient()
  // Setuptools writes into the folder that it builds.
  const sources = mkdtempSync(join(tmpdir(), 'dao-data-wheel-'))
  try {
    for (const name of ['pyproject.toml', 'README.md', 'src'])
      cpSync(join(CLIENT, name), join(sources, name), {
        recursive: true,
        filter: (file) => !/__pycache__|\.egg-info/.test(file),
      })
    cpSync(join(ROOT, 'LICENSE'), join(sources, 'LICENSE'))
    const offline = ['--no-build-isolation', '--no-deps', '--no-index', '--quiet']
    const { status, stdout, stderr } = spawnSync(
      python,
      ['-m', 'pip', 'wheel', ...offline, '--wheel-dir', into, sources],
      { encoding: 'utf8', env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1' } },
    )
    if (status !== 0) throw new Error(`the wheel was not built:\n${stdout}${stderr}`)
  } finally {
    rmSync(sources, { recursive: true })
  }
}

if (isMain(import.meta.url)) buildPythonClient(join(CLIENT, 'dist'))
