import { isolated } from '../app/isolated.ts'

/** A user's text with its line breaks. */
export const Preline = ({ text }: { readonly text: string }) => <span className="preline">{isolated(text)}</span>
