import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import express, { type NextFunction, type Request, type Response } from 'express'
import type { DatasetQueue } from '../../shared/queue/queues.ts'

export const DASHBOARD_PATH = '/queues'

/**
 * Serves the queue dashboard under `/queues` of the operations port. Without a token, every client that reaches the
 * port has read access only. With a token, only clients that send it (as the password of Basic authentication, with any
 * name) have access; they may also retry and remove jobs.
 */
export function createQueueDashboard(queues: readonly DatasetQueue[], token: string | undefined): RequestListener {
  const serverAdapter = new ExpressAdapter()
  serverAdapter.setBasePath(DASHBOARD_PATH)
  const readOnlyMode = token === undefined
  createBullBoard({ queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode })), serverAdapter })
  const app = express().disable('x-powered-by').use(blockOtherHosts).use(DASHBOARD_PATH, serverAdapter.getRouter())
  return (request, response) => {
    if (token !== undefined && !hasToken(request, token)) refuse(response, 401)
    else if (request.method !== 'GET' && isFromElsewhere(request)) refuse(response, 403)
    else app(request, response)
  }
}

/** Allows inline scripts and styles and files of this host, but nothing from another host. */
const OWN_HOST_ONLY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"

/** The template loads fonts from another host, which would learn the operator's address. */
const ELSEWHERE = /<link\b[^>]*\bhref="https?:[^>]*>/g

/** Prevents requests to other hosts; browsers fall back to their own fonts. */
function blockOtherHosts(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('content-security-policy', OWN_HOST_ONLY)
  const send = response.send.bind(response)
  response.send = (body: unknown) =>
    send(typeof body === 'string' && body.startsWith('<!DOCTYPE html>') ? body.replaceAll(ELSEWHERE, '') : body)
  next()
}

function refuse(response: ServerResponse, status: 401 | 403): void {
  const challenge = status === 401 ? { 'www-authenticate': 'Basic realm="dao-data queues"' } : {}
  response.writeHead(status, challenge).end()
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const [scheme, credentials = ''] = (headers.authorization ?? '').split(' ')
  if (scheme !== 'Basic') return false
  const received = Buffer.from(credentials, 'base64').toString()
  return timingSafeEqual(toDigest(received.slice(received.indexOf(':') + 1)), toDigest(token))
}

/** A comparison in constant time needs inputs of equal length, which digests are. */
const toDigest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Detects cross-site requests. Browsers also send the password with requests that another site triggers, but mark them
 * in this header.
 */
function isFromElsewhere({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}
