/**
 * An estimate of what a text costs a model (S section 7.4): 0.20 token per ASCII character, 0.65 per other one.
 *
 * An estimate on purpose: it needs no vocabulary, is the same for every provider, and errs on the high side for
 * scripts that tokenizers split finely. Long texts are sampled.
 */

const ASCII_TOKENS = 0.2
const OTHER_TOKENS = 0.65
/** Above this many characters a sample stands for the whole. */
const SAMPLE_ABOVE = 100_000
const SAMPLE_STEP = 17

/** Estimated tokens of a text, rounded up. */
export const estimate = (text: string): number => {
  const step = text.length > SAMPLE_ABOVE ? SAMPLE_STEP : 1
  let ascii = 0
  let other = 0
  for (let index = 0; index < text.length; index += step) {
    if (text.charCodeAt(index) < 0x80) ascii += 1
    else other += 1
  }
  return Math.ceil((ascii * ASCII_TOKENS + other * OTHER_TOKENS) * step)
}
