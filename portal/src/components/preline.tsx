import { isolated } from '../app/isolated.ts'

/** What somebody wrote, in the lines in which it was written. */
export const Preline = ({ text }: { readonly text: string }) => <span className="preline">{isolated(text)}</span>
