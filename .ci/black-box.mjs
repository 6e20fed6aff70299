// Runs the black-box check: node black-box.mjs <check.mjs> <url> <groups>. Fails when it finds anything wrong.
import { spawnSync } from 'node:child_process'

const [check, url, groups] = process.argv.slice(2)
const { stdout } = spawnSync(process.execPath, [check, url, '--only', groups, '--verbose'], { encoding: 'utf8' })
const lines = stdout.split('\n')
const failed = lines.filter((line) => line.startsWith('FAIL '))
const held = lines.filter((line) => line.startsWith('ok '))

for (const line of failed) console.log(line)
console.log(`black-box check of ${groups}: ${held.length} hold, ${failed.length} fall short`)
if (failed.length > 0 || held.length === 0) process.exit(1)
