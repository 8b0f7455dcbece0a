import process from 'node:process'

/**
 * What the gateway uses of `node:http`. Importing the whole module also loads its WebSocket client, which costs 13
 * MB and 50 ms.
 */
export const {
  Agent,
  createServer,
  get,
  IncomingMessage,
  request,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule('node:http')

export type Agent = import('node:http').Agent
export type IncomingMessage = import('node:http').IncomingMessage
export type ServerResponse = import('node:http').ServerResponse
