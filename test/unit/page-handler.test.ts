import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, it } from 'vitest'
import { createPageHandler } from '../../api/pages/page-handler.ts'

it('createKept builds a page again after a failure, then caches it', async () => {
  let created = 0
  const make = () => {
    created += 1
    if (created === 1) throw new Error('out of memory')
    return `page ${created}`
  }
  const app = express()
  app.use((_, response, next) => {
    response.locals.requestId = 'test'
    next()
  })
  const compression = {
    compress: () => {
      throw new Error('pages of this length are not compressed')
    },
  }
  app.use(createPageHandler({ find: () => ({ key: '/', page: { type: 'text/plain', make } }), compression }))
  app.use(((_error, _request, response, _next) => void response.status(500).end()) as express.ErrorRequestHandler)
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const request = async () => {
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      return [response.status, await response.text()]
    }
    expect(await request()).toEqual([500, ''])
    expect(await request()).toEqual([200, 'page 2'])
    expect(await request()).toEqual([200, 'page 2'])
  } finally {
    server.close()
  }
})
