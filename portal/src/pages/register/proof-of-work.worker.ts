import type { RegisterChallenge } from '#features/registration/contract/register.ts'
import { solve } from './proof-of-work.ts'

/** Runs beside the page, which stays usable meanwhile. */
self.onmessage = ({ data }: MessageEvent<Pick<RegisterChallenge, 'challenge' | 'difficulty'>>) =>
  self.postMessage(solve(data.challenge, data.difficulty))
