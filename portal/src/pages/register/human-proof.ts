import type { HumanCheckView } from '#features/registration/contract/register.ts'
import { fetchChallenge } from '../../api/register.ts'
import { silentToken } from './provider-script.ts'

/** Returns the value of `reCaptchaCode`; undefined if no check is configured. */
export type HumanProof = () => Promise<string | undefined>

export const noProof: HumanProof = async () => undefined

/** The proof of a check without a visible part. */
export function ownProof({ kind, siteKey = '', action = '' }: HumanCheckView): HumanProof {
  if (kind === 'proof-of-work') return solveInWorker
  return kind === 'recaptcha-v3' ? () => silentToken(siteKey, action) : noProof
}

async function solveInWorker(): Promise<string> {
  const { challenge, difficulty } = await fetchChallenge()
  const worker = new Worker(new URL('./proof-of-work.worker.ts', import.meta.url), { type: 'module' })
  try {
    return await new Promise<string>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<string>) => resolve(data)
      worker.onerror = () => reject(new Error('the proof of work failed'))
      worker.postMessage({ challenge, difficulty })
    })
  } finally {
    worker.terminate()
  }
}
