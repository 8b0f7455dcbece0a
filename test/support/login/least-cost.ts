import type { Argon2Cost } from '#protocols/passwords/argon2id.ts'

/** The least that argon2id allows (RFC 9106, 3.1), for tests that create thousands of hashes. */
export const leastCost: Argon2Cost = { memory: 8, passes: 1, parallelism: 1 }
