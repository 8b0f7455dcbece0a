/** Calls `work` until it succeeds, at most this often, while another attempt may help after the error. */
export async function retry<T>(attempts: number, mayHelp: (error: unknown) => boolean, work: () => Promise<T>) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= attempts || !mayHelp(error)) throw error
    }
  }
}
