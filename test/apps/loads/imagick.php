<?php
// Loads libraries of coders with the first image of their kind; all that imagick loaded is unloaded before the end.
function through(string $format, int $size): string
{
    $image = new Imagick();
    $image->newPseudoImage($size, $size, 'gradient:red-blue');
    $image->addNoiseImage(Imagick::NOISE_UNIFORM);
    $image->gaussianBlurImage(3, 2);
    $image->resizeImage(2 * $size, 2 * $size, Imagick::FILTER_LANCZOS, 1);
    $image->setImageFormat($format);
    $again = new Imagick();
    $again->readImageBlob($image->getImageBlob());
    return $again->getImageWidth() . 'x' . $again->getImageHeight() . ' ' . $again->getImageFormat();
}

echo through('png', 350), "\n", through('jpeg', 250), "\n";
file_get_contents('gate');
echo through('tiff', 250), "\n", through('webp', 100), "\n", through('png', 350), "\n";
