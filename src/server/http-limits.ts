/** The bounds on everything a client can send or hold open. */
export const httpLimits = {
  bodyBytes: 1024 * 1024,
  /** How long a body that is refused for its length may be, to be received and thrown away before the answer. */
  discardedBytes: 16 * 1024 * 1024,
  headerBytes: 16 * 1024,
  pathCharacters: 8 * 1024,
  /** For the whole request to arrive. */
  requestSeconds: 30,
  /** For the whole answer to be made. */
  answerSeconds: 60,
  keepAliveSeconds: 65,
} as const
