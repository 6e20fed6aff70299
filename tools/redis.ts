import { loadConfig } from '../shared/config/config.ts'
import { createPassword, readRedisAccess, redisDir, writeAccess } from '../shared/config/own-stores.ts'
import { DataError } from '../shared/errors.ts'
import { announceReady, onStopSignal, runProgram } from '../shared/process.ts'
import { startRedis } from './redis-server.ts'

/**
 * The private Redis of a data folder, on the port that the command line names: it is stopped when whoever started this is
 * gone. Its password is made at the first start and kept in the folder.
 */
runProgram(async () => {
  const dir = redisDir(loadConfig().dataDir)
  const password = readRedisAccess(dir)?.password ?? createPassword()
  const redis = await startRedis(dir, { port: Number(process.argv[2]), password })
  writeAccess(dir, { url: redis.url, password })
  let isAsked = false
  onStopSignal(() => {
    isAsked = true
    return redis.stop()
  })
  announceReady({})
  await redis.ended
  if (!isAsked) throw new DataError('storage', `Redis over ${dir} ended by itself`)
})
